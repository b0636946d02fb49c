"""Redaction: secrets are taken out of what agents and people say before it is stored, logged or shown.

Known secret values are those of environment variables whose names look like secrets, inputs marked `secret`,
and everything `ctx.require` handed out. Beside them, texts that have the shape of well-known keys are taken
out.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from orchestra.limits import SECRET_MIN_CHARS, STREAM_HELD_CHARS, VALUE_DEPTH

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
_BEGUN: Final = re.compile(
    r"""(?:
    (?:sk-|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox|AIza|hf_|eyJ|://)[^\s]*
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*
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
_TAIL_CHARS: Final = 64
"""More than the mark at the end of a private key has."""
_HINT: Final = re.compile(r"sk-|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox|AIza|hf_|eyJ|-----BEGIN|://")


class Redactor:
    """Takes secrets out of texts and values."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(*secrets)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> "Redactor":
        """One that knows the values of variables whose names look like secrets."""
        return cls(value for name, value in environment.items() if _NAME.search(name))

    def add(self, *secrets: str) -> None:
        """Know some more secret values; very short ones are not looked for, they would hit everything."""
        new = {secret for secret in secrets if len(secret) >= SECRET_MIN_CHARS} - self._known
        if new:
            self._known |= new
            longest_first = sorted(self._known, key=lambda secret: (-len(secret), secret))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

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
        shaped = _BEGUN.search(text, _whole_keys(text))
        if shaped is None or shaped.start() >= at:
            return text[:at], text[at:]
        held = _shortened(text[shaped.start() :])
        if len(held) <= STREAM_HELD_CHARS:
            return text[: shaped.start()], held
        whole = _SHAPES.match(held)
        if whole is None or whole.end() < len(held):
            return text, ""  # so long, and no key: it is something else
        return text[: shaped.start()], held[:STREAM_HELD_CHARS]

    def text(self, text: str) -> str:
        """The text without secrets."""
        if self._pattern is not None:
            text = self._pattern.sub(REDACTED, text)
        return _SHAPES.sub(REDACTED, text) if _HINT.search(text) else text

    def value(self, value: Any, depth: int = 0) -> Any:
        """The value without secrets: texts, keys, and bytes."""
        if isinstance(value, str):
            return self.text(value)
        if depth > VALUE_DEPTH or value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, dict):
            return {self.value(key, depth + 1): self.value(each, depth + 1) for key, each in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)) and type(value).__module__ == "builtins":
            return type(value)([self.value(each, depth + 1) for each in value])
        if isinstance(value, bytes):
            return self.content(value)
        return value

    def content(self, content: bytes) -> bytes:
        """Bytes without secrets; in those that are no text, secrets are found that are plain ASCII."""
        encoding = "utf-8"
        try:
            text = content.decode()
        except UnicodeDecodeError:
            encoding = "latin-1"
            text = content.decode(encoding)
        clean = self.text(text)
        return content if clean == text else clean.encode(encoding)


def _whole_keys(text: str) -> int:
    """Where the last private key of a text that is there to its end ends."""
    if "-----END" not in text:
        return 0
    return max((found.end() for found in _PRIVATE_KEY.finditer(text) if found[2]), default=0)


def _shortened(held: str) -> str:
    """The beginning of a secret without its middle, where it is a private key."""
    key = _PRIVATE_KEY.match(held)
    if key is None or len(held) <= len(key[1]) + _TAIL_CHARS:
        return held
    return key[1] + held[-_TAIL_CHARS:]
