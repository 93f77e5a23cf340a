"""Kubernetes itself: its programs and images, and whatever starts them."""
