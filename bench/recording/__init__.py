"""What a run leaves on disk, and whether it is still whole."""
