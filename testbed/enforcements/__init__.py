"""Who keeps the promise; one module an enforcement."""
