"""Redaction: secrets are taken out of what agents and people say before it is stored, logged or shown.

Known secret values are those of environment variables whose names look like secrets, inputs marked `secret`,
and everything `ctx.require` handed out. Beside them, texts that have the shape of well-known keys are taken
out.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from orchestra.limits import SECRET_MIN_CHARS, VALUE_DEPTH

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
    | -----BEGIN[^\0]*
    | \b(?:s|sk|A|AK|AKI|AS|ASI|AI|AIz|g|gh|gh[pousr]|git\w{0,8}|gl\w{0,3}|x|xo|h|hf|e|ey)
    | :/? | -{1,5}B?E?G?I?
    )\Z""",
    re.VERBOSE,
)
"""The end of a text that may go on as a key."""
_HELD_CHARS: Final = 4096
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
        """A streamed text in two: what can be said now, and an end that may be the beginning of a secret."""
        at = len(text)
        for secret in self._known:
            for length in range(min(len(secret) - 1, len(text)), 0, -1):
                if text.endswith(secret[:length]):
                    at = min(at, len(text) - length)
                    break
        shaped = _BEGUN.search(text)
        if shaped is not None:
            at = min(at, shaped.start())
        return (text[:at], text[at:]) if len(text) - at <= _HELD_CHARS else (text, "")

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
