"""A real `orchestra browse` on loopback, and what pages of it must never do."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import attrs
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0
PATIENT_MS = 120_000


@attrs.frozen(kw_only=True)
class Site:
    """A browser that is being served."""

    base: str
    token: str
    process: subprocess.Popen[str]

    def address(self, path: str) -> str:
        """A path with the token, as a first visit needs it."""
        return f"{self.base}{path}{'&' if '?' in path else '?'}token={self.token}"


@contextmanager
def served(store: str, *options: str, folder: Path | None = None) -> Iterator[Site]:
    """Serve a store in a process of its own until the end of the block."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ORCHESTRA_STORE": store, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestra", "browse", "--no-open", *options],
        cwd=folder or ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _announced(process)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _announced(process: subprocess.Popen[str]) -> Site:
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        found = re.search(r"(http://[^\s/]+)\S*[?&]token=([^\s&]+)", line)
        if found:
            return Site(base=found[1], token=found[2], process=process)
    raise AssertionError("it printed no address: " + "".join(said))


class Watch:
    """Listens to a page: errors on its console, exceptions, requests to anywhere else."""

    def __init__(self, context: BrowserContext) -> None:
        self.console: list[str] = []
        self.errors: list[str] = []
        self.strangers: list[str] = []
        self.refused: list[tuple[int, str]] = []
        self.expected: set[int] = set()
        context.on("console", self._console)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("request", self._request)
        context.on("response", self._response)

    def expect(self, *statuses: int) -> None:
        """Answers with these statuses are part of the test."""
        self.expected.update(statuses)

    def faults(self) -> Sequence[str]:
        """All that was heard and should not have been."""
        refused = [f"{status} {url}" for status, url in self.refused if status not in self.expected]
        return [*self.console, *self.errors, *self.strangers, *refused]

    def _console(self, message: ConsoleMessage) -> None:
        failed = "Failed to load resource" in message.text  # told again, with its status, by the response
        if message.type in ("error", "warning") and not failed:
            self.console.append(f"{message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob", "file", "about") and parts.hostname not in (
            "127.0.0.1",
            "localhost",
        ):
            self.strangers.append(request.url)

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.refused.append((response.status, response.url))


def opened(page: Page, site: Site, path: str, ready: str = "orchestra-strip") -> Page:
    """Open a path and wait until it can be used."""
    page.goto(site.address(path))
    page.wait_for_selector(ready)
    if ready == "orchestra-strip":
        page.wait_for_selector("orchestra-state[data-shown]")
    return page


def selected(page: Page) -> int:
    """The number of the snapshot that is selected."""
    return int(page.get_by_role("slider", name="Snapshot").get_attribute("aria-valuenow") or "-1")
