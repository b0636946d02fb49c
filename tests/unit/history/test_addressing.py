"""A store made with an address key is opened with that key only."""

import pytest

from orchestra.app.compose import open_manager
from orchestra.errors import BadSetting
from orchestra.history.addressing import KEY_VARIABLE, address_key, addresser_for
from orchestra.ids import Instant, RunId
from orchestra.model import events as ev
from orchestra.model.state import WorkflowRef
from orchestra.stores.memory import MemoryStore

KEY, OTHER = b"k" * 32, b"o" * 32


async def _digest_of_a_run(store: MemoryStore) -> bytes:
    manager = open_manager(store)
    started = ev.RunStarted(at=Instant(5), run=RunId("r"), workflow=WorkflowRef(name="w"))
    active = await manager.begin(started)
    await manager.close()
    assert active.digest is not None
    return active.digest


@pytest.mark.anyio
async def test_the_key_changes_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    plain = await _digest_of_a_run(MemoryStore())
    monkeypatch.setenv(KEY_VARIABLE, KEY.hex())
    keyed = await _digest_of_a_run(MemoryStore())
    monkeypatch.setenv(KEY_VARIABLE, OTHER.hex())
    assert len({plain, keyed, await _digest_of_a_run(MemoryStore())}) == 3


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("made", "opened", "said"),
    [
        (KEY, None, "was made with an address key"),
        (KEY, OTHER, "was made with another key"),
        (None, KEY, "was made without an address key"),
    ],
)
async def test_the_wrong_key_is_refused(
    made: bytes | None, opened: bytes | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    monkeypatch.setenv(KEY_VARIABLE, made.hex() if made else "")
    await _digest_of_a_run(store)
    with pytest.raises(BadSetting, match=said):
        addresser_for(store, opened)


@pytest.mark.parametrize("text", ["zz", "ab", "k" * 64])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(BadSetting, match="64 hexadecimal digits"):
        address_key(text)


def test_the_key_is_not_stored() -> None:
    store = MemoryStore()
    addresser_for(store, KEY, create=True)
    assert store.meta("address_key_check") not in (None, KEY)
