"""Redaction: secrets are taken out of what agents and people say before it is stored, logged or shown.

Known secret values are those of environment variables whose names look like secrets, inputs marked `secret`,
and everything `ctx.require` handed out, each also as it stands in JSON. Beside them, texts that have the
shape of well-known keys are taken out.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from orchestra.codec.values import Room
from orchestra.errors import BadName, ValueTooLarge
from orchestra.limits import SECRET_MIN_CHARS, STREAM_HELD_CHARS, VALUE_BYTES, VALUE_DEPTH

REDACTED: Final = "[redacted]"
_NAME: Final = re.compile(r"(?i)(^|_)(api_?key|key|token|secret|password|passwd|credentials?|auth)(_|$)")
_SHAPES: Final = re.compile(
    r"""
    \bsk-[A-Za-z0-9_-]{20,}              # model providers
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b      # cloud access keys
    | \bgh[pousr]_[A-Za-z0-9]{36,}       # code hosts
    | \bgithub_pat_[A-Za-z0-9_]{22,}
    | \bglpat-[A-Za-z0-9_-]{20,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,}     # chat
    | \bAIza[A-Za-z0-9_-]{35}
    | \bhf_[A-Za-z0-9]{30,}
    | \beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}   # signed tokens
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | (?<=://)[^/\s:@]+:[^/\s:@]+(?=@)   # user and password in a URL
    """,
    re.VERBOSE,
)
_BEGUN_WORD: Final = re.compile(
    r"(?:sk-|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox|AIza|hf_|eyJ|://)[^\s]*\Z"
)
"""A last word that may go on as a key. It is looked for in that word alone: in a whole text each place where
a key begins would be followed to the next space."""
_BEGUN: Final = re.compile(
    r"""(?:
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*
    | -----BEGIN(?:\ [A-Z ]*-{0,4})?
    | \b(?:s|sk|A|AK|AKI|AS|ASI|AI|AIz|g|gh|gh[pousr]|git\w{0,8}|gl\w{0,3}|x|xo|h|hf|e|ey)
    | :/? | -{1,5}B?E?G?I?
    )\Z""",
    re.VERBOSE,
)
"""The end of a text that may go on as a key."""
_PRIVATE_KEY: Final = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
_TAIL_CHARS: Final = 64  # more than the mark at the end of a private key has
_HINT: Final = re.compile(r"sk-|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox|AIza|hf_|eyJ|-----BEGIN|://")


def names_secret(name: str) -> bool:
    """Whether something called so is likely to be secret."""
    return _NAME.search(name) is not None


class Redactor:
    """Takes secrets out of texts and values."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._numbers: set[int | float] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(*secrets)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> "Redactor":
        """One that knows the values of variables whose names look like secrets."""
        return cls(value for name, value in environment.items() if names_secret(name))

    def add(self, *secrets: str) -> None:
        """Know some more secret values; very short ones are not looked for, they would hit everything."""
        long_enough = [each for each in secrets if len(each) >= SECRET_MIN_CHARS]
        new = {form for each in long_enough for form in _forms(each)} - self._known
        if new:
            self._known |= new
            longest_first = sorted(self._known, key=lambda secret: (-len(secret), secret))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def add_value(self, value: Any) -> None:
        """Know a value that is secret as a whole: all texts and numbers in it."""
        match value:
            case str():
                self.add(value)
            case int() | float() if not isinstance(value, bool):
                self.add(str(value))
                if len(str(value)) >= SECRET_MIN_CHARS:
                    self._numbers.add(value)
            case dict():
                self.add_value(list(value.values()))
            case list() | tuple() | set() | frozenset():
                for each in value:
                    self.add_value(each)
            case _:
                pass

    def split(self, text: str) -> tuple[str, str]:
        """A streamed text in two: what can be said now, and an end that may be the beginning of a secret.

        Of a secret that goes on for long only its beginning and its end are held, which is all it takes to
        know it when it is over: what lies between would be taken out anyway.
        """
        at = len(text)
        for secret in self._known:
            for length in range(min(len(secret) - 1, len(text)), 0, -1):
                if text.endswith(secret[:length]):
                    at = min(at, len(text) - length)
                    break
        begun = _begun(text)
        if begun >= at:
            return text[:at], text[at:]
        held, key = text[begun:], _PRIVATE_KEY.match(text[begun:])
        if key is not None and len(held) > len(key[1]) + _TAIL_CHARS:
            held = key[1] + held[-_TAIL_CHARS:]
        if len(held) <= STREAM_HELD_CHARS:
            return text[:begun], held
        whole = _SHAPES.match(held)
        if whole is None or whole.end() < len(held):
            return text, ""  # so long, and no key: it is something else
        return text[:begun], held[:STREAM_HELD_CHARS]

    def text(self, text: str) -> str:
        """The text without secrets."""
        if self._pattern is not None:
            text = self._pattern.sub(REDACTED, text)
        return _SHAPES.sub(REDACTED, text) if _HINT.search(text) else text

    def check_name(self, name: str, *, what: str) -> None:
        """Raise `BadName` for a name with a secret in it: without the secret it would be another name."""
        clean = self.text(name)
        if clean != name:
            raise BadName(what=what, name=clean, rule="a name without a secret in it")

    def value(self, value: Any) -> Any:
        """The value without secrets; raises `ValueTooLarge` or `UnstorableValue` for one that is too much.

        The texts inside of a value are not weighed again: an agent's were when they were handed in.
        """
        if isinstance(value, str | bytes) and len(value) > VALUE_BYTES:  # looking for secrets takes seconds
            raise ValueTooLarge(path="$", limit=VALUE_BYTES)
        return self.text(value) if type(value) is str else self._clean(value, 0, Room())

    def _clean(self, value: Any, depth: int, room: Room) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if depth > VALUE_DEPTH or value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return REDACTED if self._numbers and value in self._numbers else value
        if isinstance(value, bytes):
            return self.content(value)
        is_list = isinstance(value, (list, tuple, set, frozenset)) and type(value).__module__ == "builtins"
        if not isinstance(value, dict) and not is_list:
            return value
        room.count(len(value))
        clean = partial(self._clean, depth=depth + 1, room=room)
        if isinstance(value, dict):
            return {clean(key): clean(each) for key, each in value.items()}
        return type(value)([clean(each) for each in value])

    def content(self, content: bytes) -> bytes:
        """Bytes without secrets; in those that are no text, secrets are found that are plain ASCII."""
        try:
            text, encoding = content.decode(), "utf-8"
        except UnicodeDecodeError:
            text, encoding = content.decode("latin-1"), "latin-1"
        clean = self.text(text)
        return content if clean == text else clean.encode(encoding)


def _forms(secret: str) -> set[str]:
    """A secret as it is, and as it stands in JSON and in what Python shows of it."""
    quoted = (json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret))
    return {secret, *(each[1:-1] for each in quoted)}


def _begun(text: str) -> int:
    """Where the end of a text begins that may go on as a key."""
    whole = 0  # where the last private key ends that is there to its end
    if "-----END" in text:
        whole = max((found.end() for found in _PRIVATE_KEY.finditer(text) if found[2]), default=0)
    word = len(text) - len(text.rsplit(None, 1)[-1]) if text and not text[-1].isspace() else len(text)
    found = (_BEGUN.search(text, whole), _BEGUN_WORD.search(text, max(whole, word)))
    return min((each.start() for each in found if each is not None), default=len(text))
