"""One run: all that is done while a testbed is up: calibration, transfers, checks."""
