"""Networks of others: files of neighbours, graphs and minigraphs as a fabric of ours."""
