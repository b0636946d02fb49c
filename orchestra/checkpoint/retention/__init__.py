"""Retention: which snapshots are kept once a run is over, and removing the rest."""
