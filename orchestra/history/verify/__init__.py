"""Verification: every digest, link and reference of a run or of a whole store."""
