"""`python -m tests.golden.make` writes the golden file anew; `--force` is needed when it is there.

Changing it means that stores written before cannot be read any more, unless what was added has a default, or
the format version was raised and an upgrade added. What was written before stays here under another name:

    golden_uncounted.json    headers without `counts`, and forks that count what their origin spent
    golden_inherited.json    forks that count what their origin spent
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.ports.store import RowQuery, Store
from tests.golden.script import FORK, RUN, record

FILE = Path(__file__).with_name("golden.json")
UNCOUNTED = Path(__file__).with_name("golden_uncounted.json")
EARLIER = (UNCOUNTED, Path(__file__).with_name("golden_inherited.json"))

VALUES: dict[str, object] = {
    "null": None,
    "true": True,
    "small integer": 10,
    "negative": -1000,
    "large integer": 2**70,
    "float": 0.1,
    "whole float": 1.0,
    "negative zero": -0.0,
    "infinity": float("inf"),
    "text": "größe \u202e\x00",
    "bytes": b"\x00\xff",
    "list": [1, [2, "a"]],
    "tuple": (1, ("a",)),
    "set": {3, 1, 2},
    "map": {"b": 1, "a": 2, "aa": 3, "ä": 4},
}


def values() -> dict[str, dict[str, str]]:
    """Canonical bytes and address of sample values."""
    addresser = Addresser()
    found = {}
    for name, value in VALUES.items():
        encoded = freeze(value, addresser).encoded
        assert encoded is not None
        found[name] = {"bytes": encoded.hex(), "address": addresser.address("value", 1, encoded).hex()}
    return found


def dump(store: Store) -> dict[str, Any]:
    """Everything a store holds of the golden runs, as text."""
    rows = {
        run: [
            {"digest": row.digest.hex(), "header": row.header.hex(), "patch": (row.patch or b"").hex()}
            for row in store.rows(RowQuery(run=run))
        ]
        for run in (RUN, FORK)
    }
    digests = [info.digest for info in store.objects()]
    objects = {digest.hex(): frame.hex() for digest, frame in sorted(store.get_objects(digests).items())}
    return {"values": values(), "rows": rows, "objects": objects}


def main() -> None:
    """Write the golden file."""
    if FILE.exists() and "--force" not in sys.argv:
        sys.exit(f"{FILE.name} is there; --force overwrites it")
    store = anyio.run(record)
    FILE.write_text(json.dumps(dump(store), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
