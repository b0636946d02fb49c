"""Ports: the interfaces between the core and the outside, with their contracts."""
