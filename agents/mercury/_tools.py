"""The tools that do the looking: ruff, deptry and coverage, run as programs of their own.

They come with the package and are started with the interpreter that runs this, so none has to be on the PATH;
the settings `ruff`, `deptry` and `coverage` of an agent name another command. They read none of the project's
settings and write nothing into it. One that is missing, crashes, hangs or prints something else raises
`ToolFailed`, and its specialist goes on without it.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from _project import Project

TIMEOUT_SECONDS = 120.0
MAX_OUTPUT_BYTES = 64_000_000
_RUFF = (
    *("--isolated", "--no-cache", "--preview", "--exit-zero", "--output-format=json"),
    *("--config=lint.explicit-preview-rules=true", "--config=lint.mccabe.max-complexity=20"),
    *("--config=lint.pylint.max-statements=100", "--config=lint.pylint.max-nested-blocks=5"),
    "--config=lint.pylint.max-positional-args=10",
)
_GRAPH = ("--isolated", "--preview", "--no-type-checking-imports", "--detect-string-imports", "--min-dots=1")
_NEWEST = 14
_DEV_GROUPS = "dev,test,tests,testing,doc,docs,lint,typing,all"
_OWN_SETTINGS = re.compile(r"^\[+tool\.deptry\b[^\n]*\n(?:(?!\[)[^\n]*\n?)*", re.MULTILINE)
# Packages whose module has another name; deptry knows it only of those that are installed.
_MODULES = (
    "attrs=attr|attrs,beautifulsoup4=bs4,pycairo=cairo,opencv-python=cv2,opencv-python-headless=cv2,"
    "pycryptodome=Crypto,python-dateutil=dateutil,python-docx=docx,python-dotenv=dotenv,pymupdf=fitz,"
    "gitpython=git,pygithub=github,protobuf=google,grpcio=grpc,python-jose=jose,pyjwt=jwt,python-ldap=ldap,"
    "python-magic=magic,mysqlclient=MySQLdb,pynacl=nacl,pyopenssl=OpenSSL,pillow=PIL,psycopg2-binary=psycopg2,"
    "pyserial=serial,scikit-image=skimage,scikit-learn=sklearn,python-slugify=slugify,pysocks=socks,"
    "python-telegram-bot=telegram,pyusb=usb,pywin32=win32api|win32con|pythoncom,wxpython=wx,pyyaml=yaml,"
    "pyzmq=zmq,zope.interface=zope,pytest=pytest|_pytest,setuptools=setuptools|pkg_resources"
)


class ToolFailed(Exception):
    """A tool did not do its work."""


class Tools:
    """The tools, for one project, as an agent's settings want them."""

    def __init__(self, project: Project, settings: Mapping[str, Any]) -> None:
        self._project = project
        self._settings = settings

    def ruff(self, codes: Iterable[str], files: Sequence[str], python: int = 0) -> list[dict[str, Any]]:
        """What ruff finds in some files, for the lowest Python 3 that is promised."""
        version = f"--target-version=py3{min(max(python or _NEWEST, 7), _NEWEST)}"
        names = [f"./{name}" for name in files]
        found = self._json("ruff", "check", *_RUFF, version, f"--select={','.join(codes)}", *names)
        return _shaped("ruff", found, lambda: [(each["name"], each["location"]["row"]) for each in found])

    def imports(self) -> dict[str, list[str]]:
        """Which file imports which, as ruff sees it: also in functions, not for type checkers."""
        found = self._json(
            "ruff", "analyze", "graph", *_GRAPH, *(f"./{name}" for name in self._project.sources)
        )
        return _shaped("ruff", found, lambda: [len(following) for following in found.values()])

    def deptry(self) -> list[dict[str, Any]]:
        """What deptry finds: imported and not declared, declared and not imported. It reads copies."""
        root, sources = self._project.root, self._project.sources.values()
        with tempfile.TemporaryDirectory() as folder:
            for name in ("pyproject.toml", *(path.name for path in root.glob("*requirements*.txt"))):
                text = _OWN_SETTINGS.sub("", self._project.read(name))
                Path(folder, name).write_text(text, encoding="utf-8")
            others = "|".join(re.escape(each.name) for each in sources if not each.is_product)
            self._run(
                "deptry",
                *sorted(
                    {
                        str(root / re.match(r"(src/)?[^/]+", each.name)[0])
                        for each in sources
                        if each.is_product
                    }
                ),
                *(f"--known-first-party={name}" for name in self._project.packages),
                *(
                    f"--package-module-name-map={_MODULES}",
                    f"--optional-dependencies-dev-groups={_DEV_GROUPS}",
                ),
                *(f"--exclude=.*/({others or 'tests'})$", "--json-output=found.json"),
                cwd=Path(folder),
                codes=(0, 1),
            )
            path = Path(folder, "found.json")
            found = _parsed("deptry", path.read_text(encoding="utf-8") if path.exists() else "")
            return _shaped(
                "deptry", found, lambda: [(each["module"], each["error"]["code"]) for each in found]
            )

    def coverage(self) -> dict[str, Any]:
        """What a `.coverage` file says, as coverage's own JSON report."""
        options = ("--rcfile=/dev/null", "--ignore-errors", "--quiet", "--data-file=.coverage", "-o", "-")
        found = self._json("coverage", "json", *options)
        return _shaped("coverage", found, lambda: found["files"].items())

    def _json(self, tool: str, *arguments: str) -> Any:
        return _parsed(tool, self._run(tool, *arguments, cwd=self._project.root))

    def _run(self, tool: str, *arguments: str, cwd: Path, codes: tuple[int, ...] = (0,)) -> str:
        """What a tool prints. `-P`: a module of the project's must not be taken for the tool."""
        command = self._settings.get(tool) or [sys.executable, "-P", "-m", tool]
        command = [command] if isinstance(command, str) else command
        seconds = float(self._settings.get("tool_seconds", TIMEOUT_SECONDS))
        try:
            code, printed, complaint = run_bounded([*command, *arguments], cwd, seconds)
        except OSError as error:
            raise ToolFailed(
                f"`{tool}` cannot be started: {error.strerror}. `pip install {tool}` brings it"
            ) from None
        except subprocess.TimeoutExpired:
            raise ToolFailed(f"`{tool}` did not end within {seconds:g} s") from None
        if f"No module named {tool}" in complaint:
            raise ToolFailed(f"`{tool}` is not installed. `pip install {tool}` brings it")
        if code not in codes:
            said = ["nothing", *printed.splitlines(), *complaint.splitlines()][-1]
            raise ToolFailed(f"`{tool}` ended with code {code}, saying: {said[:200]}")
        return printed


def run_bounded(command: Sequence[str], cwd: Path, seconds: float) -> tuple[int, str, str]:
    """A program's exit code, what it printed and what it complained of; killed with its children if late."""
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complaint:
        none = subprocess.DEVNULL
        process = subprocess.Popen(
            command, cwd=cwd, stdin=none, stdout=printed, stderr=complaint, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for file in (printed, complaint):
            file.seek(0)
        return code, *(
            file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace") for file in (printed, complaint)
        )


def _parsed(tool: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ToolFailed(f"`{tool}` printed no JSON but {text[:60]!r}") from None


def _shaped(tool: str, found: Any, look: Any) -> Any:
    """What a tool printed, if it has the parts we look at."""
    try:
        look()
    except (AttributeError, KeyError, TypeError):
        raise ToolFailed(f"`{tool}` printed JSON of another form than it documents") from None
    return found
