"""How a command gets to where it is to run."""
