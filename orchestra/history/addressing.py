"""The addresses a store uses: plain, or keyed with an address key.

A store keeps a check of its key, never the key. Opening it without the key, or with another, raises
`BadSetting` before anything is read.
"""

from typing import Final

from orchestra.codec.address import Addresser
from orchestra.errors import BadSetting
from orchestra.ports.store import Store

KEY_VARIABLE: Final = "ORCHESTRA_ADDRESS_KEY"
_CHECK: Final = "address_key_check"


def address_key(text: str | None) -> bytes | None:
    """An address key as people write it: 64 hexadecimal digits; raises `BadSetting`."""
    if not text:
        return None
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise BadSetting(setting=KEY_VARIABLE, value="…", reason="an address key has 64 hexadecimal digits")
    return key


def addresser_for(store: Store, key: bytes | None, *, create: bool = False) -> Addresser:
    """The addresser of `store`; with `create` an empty store takes the key. Raises `BadSetting`."""
    addresser, check = Addresser(key), store.meta(_CHECK)
    mine = None if key is None else addresser.address("address_key", 1, b"")
    if check == mine:
        return addresser
    if mine is not None and check is None and create and store.last_no() == 0:
        store.set_meta(_CHECK, mine)
        return addresser
    made = (
        "with an address key" if mine is None else "with another key" if check else "without an address key"
    )
    value = "…" if key else ""
    raise BadSetting(setting=KEY_VARIABLE, value=value, reason=f"{store.place} was made {made}")
