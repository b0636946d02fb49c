"""From a file to its text: size, encoding and characters are checked before any YAML is read."""

import difflib
import re
from pathlib import Path
from typing import Final

from orchestra.config.problems import Problem, bad_workflow
from orchestra.limits import MB, WORKFLOW_BYTES

_REFUSED: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_BREAKS: Final = {"\x85": "NEL", "\u2028": "line separator", "\u2029": "paragraph separator"}
_BEGIN: Final = "; `orchestra init DIR` makes a project that has one"


def read_text(path: Path, file: str) -> str:
    """The text of a file; raises `BadWorkflow` where it is not there, too long or not UTF-8."""
    try:
        with path.open("rb") as stream:
            data = stream.read(WORKFLOW_BYTES + 1)
            size = path.stat().st_size
    except FileNotFoundError:
        missing = f"there is no such file{_neighbour(path) or _BEGIN}"
        raise bad_workflow(file, [Problem(0, 0, missing)]) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise bad_workflow(file, [Problem(0, 0, f"it cannot be read ({reason})")]) from None
    if len(data) > WORKFLOW_BYTES:
        raise bad_workflow(file, [Problem(1, 1, _too_long(max(size, len(data))))])
    if data.startswith(_UTF16):
        raise bad_workflow(file, [Problem(1, 1, "the file is UTF-16; save it as UTF-8")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad_workflow(file, [_undecodable(data, error.start)]) from None


def check_text(text: str, file: str) -> None:
    """Raise `BadWorkflow` for a text that is too long or has characters that do not belong into one."""
    if len(text) > WORKFLOW_BYTES:
        raise bad_workflow(file, [Problem(1, 1, _too_long(len(text)))])
    found = _REFUSED.search(text)
    if found is not None:
        advice = "remove it"
        if kind := _BREAKS.get(found[0], ""):
            kind, advice = f" ({kind})", "end the line the usual way"
        odd = f"the character U+{ord(found[0]):04X}{kind} cannot be used; {advice}"
        raise bad_workflow(file, [Problem(*_place(text, found.start()), odd)])


def _too_long(size: int) -> str:
    return f"the file has {size / MB:.1f} MB and the limit is {WORKFLOW_BYTES // MB} MB; split the workflow"


def _undecodable(data: bytes, at: int) -> Problem:
    before = data[:at].decode("utf-8-sig")
    byte = data[at]
    guess = bytes([byte]).decode("latin-1")
    hint = f" (in Latin-1 it is {guess!r})" if guess.isprintable() else ""
    return Problem(
        *_place(before, len(before)), f"the byte 0x{byte:02x} is not UTF-8{hint}; save the file as UTF-8"
    )


def _place(text: str, at: int) -> tuple[int, int]:
    lines = re.split("\r\n|\r|\n", text[:at])
    return len(lines), len(lines[-1]) + 1


def _neighbour(path: Path) -> str:
    try:
        names = [each.name for each in path.parent.iterdir() if each.suffix in (".yaml", ".yml")]
    except (OSError, ValueError):
        return ""
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean `{path.parent / close[0]}`?" if close else ""
