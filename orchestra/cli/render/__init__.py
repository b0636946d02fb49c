"""Rendering: runs, states and differences as text for terminals."""
