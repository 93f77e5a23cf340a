"""Devices in private networks: kinds Device and Connection, and the operator that makes a way to them."""
