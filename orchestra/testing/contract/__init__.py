"""The parts of the store contract suite, one file per topic. `store_contract` joins them."""

from pathlib import Path

import pytest

# Before the parts are imported, so that their failures show values and not only the bare assertion.
_PARTS = Path(__file__).parent.glob("[a-z]*.py")
pytest.register_assert_rewrite(*(f"{__name__}.{part.stem}" for part in _PARTS))
