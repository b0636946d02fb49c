"""Jobs in processes of their own: each contestant gets an empty folder and a fresh interpreter.

`measured` has one job done from its beginning to its end. A `Contestant` plays in turns with others, all of
which are open meanwhile: a machine that becomes slower for a minute is then slower for everybody.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from benchmarks.bare import bare_commit, bare_file
from benchmarks.figures import Figures, from_json

CHECKOUT: Final = Path(__file__).parents[1]
READY: Final = "ready"
"""What a worker answers when it may be told to play."""


def usual_place() -> Path:
    """The temporary folder, unless it is on another filesystem than the checkout (it may not be a disk)."""
    usual = Path(tempfile.gettempdir())
    return usual if usual.stat().st_dev == CHECKOUT.stat().st_dev else CHECKOUT / "outputs"


def measured(
    name: str,
    n: int,
    place: Path,
    job_of: Callable[[str, str], Any],
    module: str,
    timeout: float,
    *,
    kept: bool = False,
) -> Figures:
    """What a worker found. `job_of` takes the store's folder and the result's file.

    Its files are removed, unless they are to be `kept` for whoever made the place to remove: a filesystem may
    not use what was removed just now again for half a minute (ext4 does not), and where many files are made
    whoever came next would pay for looking further.
    """
    scratch = Path(tempfile.mkdtemp(prefix="orchestra-bench-", dir=place))
    try:
        folder, result = scratch / "store", scratch / "figures.json"
        folder.mkdir()
        disk = bare_commit(scratch / "bare.db")
        problem = _work(module, job_of(str(folder), str(result)), timeout)
        if problem:
            figures = Figures(name=name, n=n, missing=problem)
        else:
            figures = from_json(json.loads(result.read_text()))
        figures.metrics.update(disk=disk, machine_load=os.getloadavg()[0])
        return figures
    finally:
        if not kept:
            shutil.rmtree(scratch)


def _work(module: str, job: Any, timeout: float) -> str | None:
    """Run a worker; None, or what went wrong."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", module],
            input=json.dumps(attrs.asdict(job)),
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {timeout:.0f} s"
    return None if done.returncode == 0 else _last_words(done.stderr, done.returncode)


class Contestant:
    """A worker in a process of its own that plays when it is its turn, and waits while others do."""

    def __init__(
        self,
        name: str,
        n: int,
        place: Path,
        job_of: Callable[[str, str], Any],
        module: str,
        timeout: float,
    ) -> None:
        """As `measured`, with files that are kept; returns when the worker is ready to play."""
        self.name, self._n, self._timeout = name, n, timeout
        self._scratch = Path(tempfile.mkdtemp(prefix="orchestra-bench-", dir=place))
        folder, self._result = self._scratch / "store", self._scratch / "figures.json"
        folder.mkdir()
        self._around: dict[str, list[float]] = {"disk": [], "file": [], "machine_load": []}
        self._problem: str | None = None
        self._errors = (self._scratch / "errors.txt").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._told(json.dumps(attrs.asdict(job_of(str(folder), str(self._result)))))

    def play(self) -> None:
        """Its turn; returns when that is over."""
        if self._problem is None:
            turn = len(self._around["disk"])
            self._around["disk"].append(bare_commit(self._scratch / f"bare-{turn}.db"))
            self._around["file"].append(bare_file(self._scratch / f"bare-{turn}"))
            self._told("play")
            self._around["machine_load"].append(os.getloadavg()[0])

    def figures(self) -> Figures:
        """What it measured in all its turns; the worker ends."""
        with self._errors, self._limit():
            self._process.communicate()
            if self._problem is None and self._process.returncode:
                self._problem = self._trouble()
        if self._problem is not None:
            return Figures(name=self.name, n=self._n, missing=self._problem)
        figures = from_json(json.loads(self._result.read_text()))
        figures.metrics.update({name: statistics.median(each) for name, each in self._around.items() if each})
        return figures

    def _told(self, line: str) -> None:
        """Tell it something and wait for its answer."""
        assert self._process.stdin is not None, "BUG: its input is a pipe"
        assert self._process.stdout is not None, "BUG: its output is a pipe"
        with self._limit():
            try:
                print(line, file=self._process.stdin, flush=True)
                answer = self._process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if answer.strip() != READY:
                self._process.wait()
                self._problem = self._trouble()

    @contextmanager
    def _limit(self) -> Iterator[None]:
        """Whatever takes too long is ended."""
        timer = threading.Timer(self._timeout, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _trouble(self) -> str:
        self._errors.seek(0)
        if self._process.returncode == -signal.SIGKILL:
            return f"not done after {self._timeout:.0f} s"
        return _last_words(self._errors.read(), self._process.returncode)


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


def _last_words(errors: str, code: int) -> str:
    lines = [line for line in errors.splitlines() if line.strip(" |+-")]
    return lines[-1].strip(" |") if lines else f"it ended with code {code}"
