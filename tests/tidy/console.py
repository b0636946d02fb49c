"""Plays the shell examples of a page in one shell, from the first block to the last.

In a `console` block a line that begins with `$ ` is typed, and the lines below it are what it prints. They
have to be found in what it really prints, in this order; `…` stands for anything, and spaces count as one.
What is printed beside them is left to the page. A command has to end with 0 unless `echo $?` follows it. A
block of another language whose first line names a file, as in ```python agents/x.py, is written to that
file. A block `console node` is left out where there is no such program.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

from tests.tidy.project import ROOT

_FENCE = re.compile(
    r"^```(?P<language>\w+)(?: +(?P<name>\S+))?\n(?P<body>.*?)^``` *$", re.MULTILINE | re.DOTALL
)
_END = "EOF-of-the-example"
_MARK = "\x1e"
_SECONDS = 120


@attrs.frozen
class Typed:
    """A command, and what the page says it prints."""

    command: str
    expected: tuple[str, ...]


def played_blocks(page: str) -> list[Typed]:
    """Everything a page has its reader do, in order; files are commands that write them."""
    found: list[Typed] = []
    for match in _FENCE.finditer(page):
        language, name, body = match["language"], match["name"], match["body"]
        if language == "console":
            if name is None or shutil.which(name):
                found.extend(_typed(body))
        elif name is not None:
            found.append(Typed(_written(name, body), ()))
    return found


def _typed(body: str) -> Iterator[Typed]:
    for part in re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *printed = part.splitlines()
        yield Typed(command, tuple(line for line in printed if line.strip() not in ("", "…")))


def _written(name: str, body: str) -> str:
    folder = shlex.quote(str(Path(name).parent))
    return f"mkdir -p {folder} && cat > {shlex.quote(name)} <<'{_END}'\n{body}{_END}"


def play(page: str, folder: Path) -> list[str]:
    """Play a page in an empty folder; gives what is not as the page says."""
    steps = played_blocks(page)
    if not steps:
        return ["there is nothing to play"]
    script = "".join(
        f"{step.command}\n__code=$?; printf '{_MARK}%s{_MARK}' $__code; (exit $__code)\n" for step in steps
    )
    work = folder / "work"
    work.mkdir()
    done = subprocess.run(
        ["bash", "-c", "exec 2>&1\n" + script],
        cwd=work,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    pieces = done.stdout.split(_MARK)
    outcomes = list(zip(pieces[0::2], pieces[1::2], strict=False))
    if len(outcomes) != len(steps):
        return [f"the shell ended early: {done.stdout[-2000:]}{done.stderr[-2000:]}"]
    following = [each.command for each in steps[1:]] + [""]
    return [
        fault
        for step, (printed, code), after in zip(steps, outcomes, following, strict=True)
        for fault in _faults(step, printed, int(code), after)
    ]


def _environment(folder: Path) -> dict[str, str]:
    """A plain environment with `orchestra` and `python` in it, as if they were installed."""
    programs = folder / "bin"
    programs.mkdir()
    for name, rest in (("orchestra", " -m orchestra"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{rest} "$@"\n')
        (programs / name).chmod(0o755)
    kept = {name: os.environ[name] for name in ("TMPDIR", "TZ", "VIRTUAL_ENV") if name in os.environ}
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return kept | {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(folder), "LANG": "C.UTF-8"}


def _faults(step: Typed, printed: str, code: int, after: str) -> Iterator[str]:
    lines = [_plain(line) for line in printed.splitlines()]
    at = 0
    for expected in step.expected:
        wanted = re.compile(".*".join(re.escape(part) for part in _plain(expected).split("…")))
        found = next((place for place in range(at, len(lines)) if wanted.fullmatch(lines[place])), None)
        if found is None:
            yield f"$ {step.command}\nshould print\n  {expected}\nand printed\n{printed}"
            return
        at = found + 1
    if code and not after.startswith("echo $?"):
        yield f"$ {step.command}\nended with {code} and printed\n{printed}"


def _plain(line: str) -> str:
    return " ".join(line.split())
