"""How it is measured: traffic, recordings, accounting, verdicts, figures and reports."""
