"""One or two knobs swept over their values, on the same traffic: curves, surfaces, directions."""
