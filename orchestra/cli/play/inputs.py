"""Names and values as they are given on the command line."""

from orchestra.errors import BadSetting


def read_inputs(given: list[str]) -> dict[str, str]:
    """`NAME=VALUE`, each once; raises `BadSetting`."""
    return read_pairs(given, "--input", "NAME=VALUE")


def read_pairs(given: list[str], option: str, form: str) -> dict[str, str]:
    """The values of an option that names what they are for, each once; raises `BadSetting`."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise BadSetting(setting=option, value=each, reason=f"write {form}")
        if name in found:
            raise BadSetting(setting=option, value=each, reason=f"{name!r} was given twice")
        found[name] = value
    return found
