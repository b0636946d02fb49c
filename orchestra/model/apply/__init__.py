"""Applying events: what each kind of event does to a state."""
