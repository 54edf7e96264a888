"""Calibration of a scenario by measured bandwidth and latency: ``dcqcn-gym calibrate``."""
