"""Turns machines into the clusters of a scenario, by Ansible playbooks, and back."""
