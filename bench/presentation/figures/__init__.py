"""Figures, and what all of them share."""
