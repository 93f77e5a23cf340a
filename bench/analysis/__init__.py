"""What the numbers mean: samples, phases, excuses, intervals, verdict, summary."""
