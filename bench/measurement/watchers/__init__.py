"""Threads that look on while traffic flows: at rates, at processors, and at the clock."""
