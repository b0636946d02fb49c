"""A theatre for each test."""

from pathlib import Path

import pytest

from tests.unit.engine.support import Theatre


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    """A store in memory and a folder to work in."""
    return Theatre(tmp_path)
