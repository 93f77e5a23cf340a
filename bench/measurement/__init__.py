"""One run: everything that is done while a testbed is up."""
