"""Shapes: the models of answers, for the description at /api/openapi.json. Tests compare both.

Times are whole microseconds since 1970. `Any` is a value of a state in the forms of `docs/reference/http.md`.
"""
