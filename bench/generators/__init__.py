"""What makes traffic; one tool a module: its commands, and how its output is read."""
