"""Timed exchanges: what makes them in the pods' networks, and what reads what that leaves."""
