"""What the command line does, verb by verb; ``tasks.py`` only names the verbs and their options."""
