"""What is measured: speed, accuracy of the monitors, parity of the simulators, tuners compared."""
