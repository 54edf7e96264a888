"""Random bad input to everything that reads what a person or a stranger wrote."""
