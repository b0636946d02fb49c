"""Inputs as they are given on the command line."""

from orchestra.errors import BadSetting


def read_inputs(given: list[str]) -> dict[str, str]:
    """`NAME=VALUE`, each once; raises `BadSetting`."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise BadSetting(setting="--input", value=each, reason="write NAME=VALUE")
        if name in found:
            raise BadSetting(setting="--input", value=each, reason=f"{name!r} was given twice")
        found[name] = value
    return found
