"""Names and values as they are given on the command line."""

from collections.abc import Iterator

from orchestra.errors import BadSetting


def read_inputs(given: list[str]) -> dict[str, str]:
    """`NAME=VALUE`, each once; raises `BadSetting`."""
    return dict(read_pairs(given, "--input", "NAME=VALUE"))


def read_pairs(given: list[str], option: str, form: str) -> Iterator[tuple[str, str]]:
    """The values of an option with what each is for, each once and in order; raises `BadSetting`."""
    seen: set[str] = set()
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise BadSetting(setting=option, value=each, reason=f"write {form}")
        if name in seen:
            raise BadSetting(setting=option, value=each, reason=f"{name!r} was given twice")
        seen.add(name)
        yield name, value
