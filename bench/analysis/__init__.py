"""What the numbers mean: from raw output to a verdict."""
