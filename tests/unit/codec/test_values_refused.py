"""What is said about values that cannot be stored."""

import pytest

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.errors import UnstorableValue
from orchestra.limits import HEADLINE_CHARS


def test_the_reason_is_in_sight_however_deep_the_value_is() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(UnstorableValue, match="it is nested deeper than 64 levels") as caught:
        freeze(value, Addresser())
    assert len(f"UnstorableValue: {caught.value}") < HEADLINE_CHARS
    assert str(caught.value).startswith("The value at $[0][0]")
