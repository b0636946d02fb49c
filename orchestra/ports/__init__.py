"""Ports: what the core asks of the outside, as contracts."""
