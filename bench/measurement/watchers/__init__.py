"""What looks on while traffic flows, at rates and queues; see ``observations`` for all else."""
