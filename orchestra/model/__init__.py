"""The model: immutable values, the persistent tree, events and what they do to a state."""
