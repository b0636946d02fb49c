"""Tests of `orchestra.telemetry`."""
