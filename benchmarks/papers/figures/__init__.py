"""One file per figure or table; its name is the figure's, ``D-fig6`` in ``d_fig6.py``."""
