"""One page over a folder of runs: settings are ticked, and compared by flow size and over time."""
