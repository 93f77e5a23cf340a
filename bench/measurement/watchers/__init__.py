"""What looks on while traffic flows."""
