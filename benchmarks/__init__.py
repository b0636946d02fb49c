"""Measurements and recordings that are no part of the package: see `docs/benchmarks.md`."""
