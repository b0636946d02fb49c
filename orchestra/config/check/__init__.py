"""Checking workflow files: every mistake at once, each with its place."""
