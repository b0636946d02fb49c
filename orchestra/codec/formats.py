"""Format versions: how a state written by an earlier version becomes one of today.

Every frame carries the version it was written with. A reader takes a sealed state of version V, applies the
patches of that version, and then lifts the document from version to version; only then does it become model
values. What is stored is never rewritten. After a lift the next snapshot is sealed anew, so patches never
build on a seal of another version.
"""

from collections.abc import Callable, Mapping
from typing import Final

from orchestra.codec.document import Document
from orchestra.codec.frame import FORMAT
from orchestra.errors import Damaged

Upgrade = Callable[[Document], Document]

UPGRADES: Final[Mapping[int, Upgrade]] = {}
"""From each earlier version to the next. There is no earlier version yet."""


def upgraded(
    document: Document,
    version: int,
    *,
    what: str,
    to: int = FORMAT,
    upgrades: Mapping[int, Upgrade] = UPGRADES,
) -> Document:
    """A document of `version` as one of version `to`; raises `Damaged` when no way leads there."""
    for step in range(version, to):
        upgrade = upgrades.get(step)
        if upgrade is None:
            raise Damaged(what=what, reason=f"it is of format {version}, from which no upgrade leads to {to}")
        document = upgrade(document)
    return document
