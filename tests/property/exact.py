"""Exact comparison. Python says that 1 == 1.0 == True, 0.0 == -0.0 and nan != nan; bytes disagree."""

import math
import struct
from datetime import datetime
from typing import Any

import attrs

from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value


def exact(thing: Any) -> Any:
    """A form of `thing` that is equal to another's only if both are of the same types and bits throughout."""
    if isinstance(thing, float):
        return "float", "nan" if math.isnan(thing) else struct.pack(">d", thing)
    if isinstance(thing, Value):
        return "value", thing.digest or thing.encoded, thing.size
    if isinstance(thing, Vec):
        return "vec", [exact(item) for item in thing]
    if isinstance(thing, Table):
        return "table", [(key, exact(item)) for key, item in thing.items()]
    if isinstance(thing, dict):
        return "dict", {key: exact(item) for key, item in thing.items()}
    if isinstance(thing, list | tuple):
        return type(thing), [exact(item) for item in thing]
    if isinstance(thing, set | frozenset):
        return type(thing), sorted((exact(item) for item in thing), key=repr)
    if attrs.has(type(thing)):
        return type(thing), [exact(getattr(thing, field.name)) for field in attrs.fields(type(thing))]
    if isinstance(thing, datetime):
        return "moment", thing.isoformat()  # fold is not kept, the offset is
    return type(thing), thing
