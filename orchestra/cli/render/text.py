"""Text from runs, made fit for a terminal: nothing in it can move the cursor, colour, reorder or hide.

`safe` is applied to every piece of text in the one place that prints, so that no command can forget it.
"""

import re
import unicodedata
from typing import Final

_PRINTABLE: Final = re.compile(r"[ -~]*")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\"}
_HIDDEN_IN_JSON: Final = re.compile(r"[^ -~]")
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")


def safe(text: str, *, keep: str = "") -> str:
    """`text` with every character that is not plainly visible written as an escape, except in `keep`."""
    if _PRINTABLE.fullmatch(text):
        return text
    return "".join(char if char in keep or _visible(char) else _escape(char) for char in text)


def safe_json(text: str) -> str:
    """JSON text in which characters that are not plainly visible are escaped; it means the same."""
    return _HIDDEN_IN_JSON.sub(lambda found: found[0] if _visible(found[0]) else _json_escape(found[0]), text)


def _visible(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(char: str) -> str:
    if char == "\n":
        return char  # between the parts of a document; inside a string it is escaped already
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def width(text: str) -> int:
    """How many columns a text takes in a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """`text` cut to that many columns, with … where something is left out."""
    if width(text) <= columns:
        return text
    taken, used = [], 0
    for char in text:
        used += _columns(char)
        if used > columns - 1:
            break
        taken.append(char)
    return "".join(taken).rstrip() + "…" if columns > 0 else ""


def size(count: int) -> str:
    """A number of bytes for people, e.g. `1.6 KB`."""
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    if unit == 0:
        return f"{count} B"
    return f"{amount:.1f} {_UNITS[unit]}" if amount < 100 else f"{amount:.0f} {_UNITS[unit]}"


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun, e.g. `1 run` or `1,200 runs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
