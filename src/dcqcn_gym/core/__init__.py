"""Shared by all packages: knobs, spaces, interval reports, utility, errors."""
