"""States of earlier formats are lifted step by step."""

import pytest

from orchestra.codec.document import UPGRADES, Document, upgrade_document
from orchestra.codec.frame import FORMAT
from orchestra.errors import Damaged


def _rename(document: Document) -> Document:
    lifted = dict(document)
    lifted["new"] = lifted.pop("old")
    return lifted


def _double(document: Document) -> Document:
    return {**document, "new": document["new"] * 2}


def test_upgrades_run_in_order() -> None:
    upgrades = {1: _rename, 2: _double}
    assert upgrade_document({"old": 4}, 1, what="x", to=3, upgrades=upgrades) == {"new": 8}
    assert upgrade_document({"new": 4}, 2, what="x", to=3, upgrades=upgrades) == {"new": 8}


def test_a_gap_is_named() -> None:
    with pytest.raises(Damaged, match="no upgrade leads to 3"):
        upgrade_document({"old": 4}, 1, what="x", to=3, upgrades={1: _rename})


def test_every_earlier_format_can_be_lifted() -> None:
    assert set(UPGRADES) == set(range(1, FORMAT))
