"""Tests that watch the house: sizes, layers, doors, exported names, and docs that keep up with the code."""
