"""JSON objects made of attributes of objects, or of fields of stored documents."""

from typing import Any

from orchestra.codec.document import Document

Json = dict[str, Any]


def attributes(source: object, *names: str) -> Json:
    """Some attributes of an object by their names; of nothing, None for each."""
    return {name: None if source is None else getattr(source, name) for name in names}


def fields(held: Document, *names: str, **defaults: Any) -> Json:
    """Some fields of a document: those that are always stored, and those with a default."""
    return {name: held[name] for name in names} | {
        name: held.get(name, default) for name, default in defaults.items()
    }
