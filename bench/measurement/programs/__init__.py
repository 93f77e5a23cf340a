"""Programs that run where the packets are: by their paths, with whatever Python 3 is there."""
