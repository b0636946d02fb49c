"""Bundles: one run with the page that shows it, in a single file."""
