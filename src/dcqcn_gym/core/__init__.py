"""What everything stands on: knobs, spaces, interval reports, utility, errors."""
