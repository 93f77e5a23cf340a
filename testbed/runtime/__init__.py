"""What a container runtime does on a node: calls CNI plugins, and connects containers as Docker does."""
