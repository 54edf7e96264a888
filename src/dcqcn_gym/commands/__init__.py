"""Room `commands`: one file per command line command; cli.py composes them."""
