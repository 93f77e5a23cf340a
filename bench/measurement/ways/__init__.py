"""What is measured of the ways between nodes, beside recordings: their price, and how soon they are there."""
