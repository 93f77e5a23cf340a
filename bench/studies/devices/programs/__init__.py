"""Programs that run by their path where connections begin and in their pods; standard library only."""
