"""Interchange: runs and snapshots as files that travel: the JSON form, exports, imports."""
