"""Shapes: the pydantic models of answers, for the API's description."""
