"""JSON on standard output: one document, in UTF-8, with nothing in it that a terminal would obey."""

import json
import sys
from typing import Any

from orchestra.cli.render.text import safe_json


def print_json(document: Any) -> None:
    """Print one JSON document."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    sys.stdout.write(safe_json(text) + "\n")


def pick(held: object, *names: str) -> dict[str, Any]:
    """Some fields of a record, for JSON."""
    return {name: getattr(held, name) for name in names}
