"""Which addresses a store uses: plain, or keyed with an address key that whoever opens it must have.

A store made with an address key records a check of that key, never the key. Opening it without the key, or
with another, is refused before anything is read: every digest would look wrong.
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
    """What makes the addresses of `store`; with `create` an empty one takes the key. Raises `BadSetting`."""
    check = store.meta(_CHECK)
    if key is None:
        if check is not None:
            raise BadSetting(
                setting=KEY_VARIABLE, value="", reason=f"{store.place} was made with an address key"
            )
        return Addresser()
    addresser = Addresser(key)
    mine = addresser.address("address_key", 1, b"")
    if check is None and create and store.last_no() == 0:
        store.set_meta(_CHECK, mine)
    elif check is None:
        raise BadSetting(
            setting=KEY_VARIABLE, value="…", reason=f"{store.place} was made without an address key"
        )
    elif check != mine:
        raise BadSetting(setting=KEY_VARIABLE, value="…", reason=f"{store.place} was made with another key")
    return addresser
