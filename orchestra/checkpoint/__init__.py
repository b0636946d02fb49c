"""Checkpoints: recording, restoring, comparing and proving the snapshots of runs."""
