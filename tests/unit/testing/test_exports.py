"""What `orchestra.testing` offers is there, loaded when asked for."""

import pytest

import orchestra.testing


def test_every_listed_name_is_there() -> None:
    for name in orchestra.testing.__all__:
        assert getattr(orchestra.testing, name).__name__ == name


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        orchestra.testing.nonsense  # type: ignore[attr-defined]  # noqa: B018
