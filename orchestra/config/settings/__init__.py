"""Settings: where each comes from and what it is."""
