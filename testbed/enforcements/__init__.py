"""Who keeps the promise, and how that is seen; one module an enforcement."""
