"""Routes: what the HTTP API answers."""
