"""The tools that do the looking: ruff, deptry and coverage, run as programs of their own.

They come with the package, and are started with the interpreter that runs this, so nothing has to be on the
PATH; the settings `ruff`, `deptry` and `coverage` of an agent name another command. They read none of the
project's settings, write nothing into it, and may take so long and print so much. One that is missing,
crashes, hangs or prints something else raises `ToolFailed`, and its specialist goes on without it.
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
from threading import Timer
from typing import Any

from _project import Project

TIMEOUT_SECONDS = 120.0
MAX_OUTPUT_BYTES = 64_000_000
_RUFF = ("--isolated", "--no-cache", "--preview")
_LIMITS = {
    "explicit-preview-rules": "true",
    "mccabe.max-complexity": "20",
    "pylint.max-statements": "100",
    "pylint.max-nested-blocks": "5",
    "pylint.max-positional-args": "10",
}
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

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(f"`{tool}` {why}")
        self.tool = tool


class Tools:
    """The tools, for one project, as an agent's settings want them."""

    def __init__(self, project: Project, settings: Mapping[str, Any]) -> None:
        self.project = project
        self._settings = settings

    def ruff(self, codes: Iterable[str], files: Sequence[str], python: int = 0) -> list[dict[str, Any]]:
        """What ruff finds in some files, for the lowest Python 3 that is promised."""
        limits = [f"--config=lint.{name}={value}" for name, value in _LIMITS.items()]
        wanted = ["--exit-zero", "--output-format=json", f"--select={','.join(codes)}"]
        version = f"--target-version=py3{min(max(python or _NEWEST, 7), _NEWEST)}"
        names = [f"./{name}" for name in files]
        found = self._json("ruff", "check", *_RUFF, *limits, *wanted, version, *names)
        if not isinstance(found, list) or not all(_is_diagnostic(each) for each in found):
            raise ToolFailed("ruff", "printed JSON of another form than it documents")
        return found

    def imports(self) -> dict[str, set[str]]:
        """Which file imports which, as ruff sees it: also in functions, not for type checkers."""
        names = [f"./{name}" for name in self.project.sources]
        options = (
            "--isolated",
            "--preview",
            "--no-type-checking-imports",
            "--detect-string-imports",
            "--min-dots=1",
        )
        found = self._json("ruff", "analyze", "graph", *options, *names)
        if not isinstance(found, dict) or not all(isinstance(each, list) for each in found.values()):
            raise ToolFailed("ruff", "printed JSON of another form than it documents")
        return {name: set(map(str, following)) for name, following in found.items()}

    def deptry(self) -> list[dict[str, Any]]:
        """What deptry finds: declared and not imported, imported and not declared. It reads copies."""
        with tempfile.TemporaryDirectory() as folder:
            for path in (*self.project.root.glob("*requirements*.txt"), self.project.root / "pyproject.toml"):
                text = self.project.read(path.name)
                Path(folder, path.name).write_text(_OWN_SETTINGS.sub("", text), encoding="utf-8")
            roots = sorted({_top(each.name) for each in self.project.product})
            outside = "|".join(
                re.escape(each.name) for each in self.project.sources.values() if not each.is_product
            )
            options = [
                f"--exclude=.*/({outside or 'tests'})$",
                "--no-ansi",
                f"--optional-dependencies-dev-groups={_DEV_GROUPS}",
                f"--package-module-name-map={_MODULES}",
            ]
            known = [f"--known-first-party={name}" for name in sorted(self.project.packages)]
            paths = [str(self.project.root / name) for name in roots]
            output = Path(folder, "found.json")
            self._run(
                "deptry",
                [*paths, *options, *known, f"--json-output={output}"],
                cwd=Path(folder),
                codes=(0, 1),
            )
            return self._deptry_found(output)

    def _deptry_found(self, output: Path) -> list[dict[str, Any]]:
        try:
            found = json.loads(output.read_text(encoding="utf-8"))
            return [
                {"code": each["error"]["code"], "module": each["module"], "line": each["location"]["line"] or 0,
                 "file": os.path.relpath(Path(output.parent, each["location"]["file"]), self.project.root)}
                for each in found
            ]  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ToolFailed(
                "deptry", f"wrote something else than the JSON it documents: {error!r}"
            ) from error

    def coverage(self, data: str) -> dict[str, Any]:
        """What a `.coverage` file says, as coverage's own JSON report."""
        options = [
            "json",
            "--rcfile=/dev/null",
            "--ignore-errors",
            "--quiet",
            f"--data-file={data}",
            "-o",
            "-",
        ]
        found = self._json("coverage", *options)
        if not isinstance(found, dict):
            raise ToolFailed("coverage", "printed JSON of another form than it documents")
        return found

    def _json(self, tool: str, *arguments: str) -> Any:
        printed = self._run(tool, arguments, cwd=self.project.root)
        try:
            return json.loads(printed)
        except ValueError:
            raise ToolFailed(tool, f"printed no JSON but {printed[:60]!r}") from None

    def _run(self, tool: str, arguments: Sequence[str], *, cwd: Path, codes: tuple[int, ...] = (0,)) -> str:
        """What a tool prints. `-P`: a module of the project's must not be taken for the tool."""
        command = self._settings.get(tool) or [sys.executable, "-P", "-m", tool]
        command = [command] if isinstance(command, str) else [*command]
        seconds = float(self._settings.get("tool_seconds", TIMEOUT_SECONDS))
        try:
            code, printed, complaint = run_bounded([*command, *arguments], cwd, seconds)
        except OSError as error:
            raise ToolFailed(
                tool, f"cannot be started: {error.strerror}. `pip install {tool}` brings it"
            ) from None
        except subprocess.TimeoutExpired:
            raise ToolFailed(tool, f"did not end within {seconds:g} s") from None
        if f"No module named {tool}" in complaint:
            raise ToolFailed(tool, f"is not installed. `pip install {tool}` brings it")
        if code not in codes:
            said = (complaint.strip() or printed.strip()).splitlines()[-1:] or ["nothing"]
            raise ToolFailed(tool, f"ended with code {code}, saying: {said[0][:200]}")
        return printed


def run_bounded(command: Sequence[str], cwd: Path, seconds: float) -> tuple[int, str, str]:
    """The exit code of a program, what it printed, and what it complained of; it may take so long and no longer."""
    ended: list[bool] = []
    with tempfile.TemporaryFile() as complaint:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaint,
            start_new_session=True,
        )
        assert process.stdout is not None, "BUG: a pipe was asked for"

        def end() -> None:
            ended.append(True)
            os.killpg(process.pid, signal.SIGKILL)

        timer = Timer(seconds, end)
        timer.start()
        try:
            printed = process.stdout.read(MAX_OUTPUT_BYTES)
            if len(printed) == MAX_OUTPUT_BYTES:
                end()
            code = process.wait()
        finally:
            timer.cancel()
            process.stdout.close()
        if ended:
            raise subprocess.TimeoutExpired(command, seconds)
        complaint.seek(0)
        return code, printed.decode("utf-8", "replace"), complaint.read(10_000).decode("utf-8", "replace")


def _is_diagnostic(each: Any) -> bool:
    try:
        return (
            isinstance(each["message"] + each["name"] + each["filename"], str)
            and each["location"]["row"] >= 0
        )
    except (TypeError, KeyError):
        return False


def _top(name: str) -> str:
    """The folder or file of the project a source is reached by."""
    head, _, rest = name.partition("/")
    return f"{head}/{_top(rest)}" if head == "src" and rest else head
