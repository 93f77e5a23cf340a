"""What is measured: scenarios, the nodes they run on, pod networks and pods."""
