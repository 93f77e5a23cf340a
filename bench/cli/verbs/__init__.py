"""What the command line does, verb by verb; ``table.py`` names the verbs and their options."""
