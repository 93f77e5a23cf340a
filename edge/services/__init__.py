"""Which endpoint of a service answers which node."""
