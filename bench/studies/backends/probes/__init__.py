"""What is measured of datapaths beside recordings: their price, and how soon they are there."""

from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")  # each runs where the nodes are
