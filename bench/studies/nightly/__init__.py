"""The same scenarios every night: do the guarantees still hold, and are they kept as well as before?"""
