"""`python -m benchmarks.pictures`: makes the pictures of the documentation, so that they stay true.

It records demo runs and plays the resilience demo in a folder of its own, serves them with `orchestra browse`
and takes pictures of the page in Chromium, light and dark. The terminal is drawn from what `orchestra run`
really prints. Everything goes to `docs/pictures`.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import anyio
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from benchmarks.browser import NAMES
from benchmarks.browser_page import ROOT, Server, serving
from benchmarks.demo import letters
from benchmarks.demo.stage import PlayClock
from benchmarks.record_demo import record
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.ids import Instant
from orchestra.ports.store import RunQuery, Store
from orchestra.stores.registry import open_store

FOLDER: Final = ROOT / "docs/pictures"
MOST_BYTES: Final = 250_000
COLUMNS: Final = 120
WIDE: Final = {"width": 1240, "height": 760}
SHORT: Final = {"width": 1240, "height": 430}
MIDDLE: Final = {"width": 1240, "height": 500}
NARROW: Final = {"width": 390, "height": 844}
INK: Final = TerminalTheme(
    (25, 27, 30),
    (227, 228, 231),
    [
        (25, 27, 30),
        (255, 143, 134),
        (111, 207, 151),
        (234, 183, 95),
        (138, 171, 255),
        (199, 155, 242),
        (126, 202, 214),
        (227, 228, 231),
    ],
)


def played(folder: Path) -> tuple[str, str]:
    """A store with demo runs and one that was really played: its URL, and what playing it printed."""
    for name in ("configs", "agents"):
        shutil.copytree(ROOT / name, folder / name)
    url = f"sqlite:{folder / 'runs.db'}"
    start = Instant(time.time_ns() // 1000 - 3_600_000_000)
    with open_store(url, create=True) as store:
        anyio.run(lambda: record(store, runs=3, seed=7, start=start))
        anyio.run(_talked, store, start)
    command = [
        sys.executable,
        "-m",
        "orchestra",
        "run",
        "configs/resilience_demo.yaml",
        "--run-id",
        "resilience",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    environment["ORCHESTRA_STORE"] = url
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    others = (["approval_demo.yaml"], ["code_review.yaml", "--run-id", "review", "--input", "path=agents"])
    for name, *options in others:
        more = [*command[:4], f"configs/{name}", *options]
        subprocess.run(more, cwd=folder, env=environment, capture_output=True, check=False)
    return url, done.stdout


async def _talked(store: Store, start: Instant) -> None:
    """Record a run whose agent talks to a language model."""
    clock = PlayClock(start)
    async with CheckpointManager(store, clock=clock, owner="demo") as manager:
        await letters.play(manager, clock)


def terminal(said: str) -> str:
    """What a command printed, as a drawing that needs no font from anywhere."""
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(
        Text.from_ansi("\x1b[1m$ orchestra run configs/resilience_demo.yaml\x1b[0m\n\n" + said.rstrip())
    )
    drawing = console.export_svg(title="orchestra", theme=INK)
    drawing = re.sub(r"@font-face\s*\{.*?\}", "", drawing, flags=re.DOTALL)
    fonts = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
    drawing = re.sub(r"font-family:\s*[^;]+;", f"font-family: {fonts};", drawing)
    drawing = "\n".join(line.rstrip() for line in drawing.splitlines()) + "\n"
    return drawing.replace("<!-- Generated with Rich https://www.textualize.io -->\n", "")


class Album:
    """Takes pictures of pages."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self._browser, self._server = browser, server

    def take(
        self, name: str, path: str, *keys: str, ready: str, dark: bool = False, size: dict[str, int] = WIDE
    ) -> None:
        """One picture, after keys were pressed."""
        context = self._browser.new_context(
            viewport=size,  # type: ignore[arg-type]
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(self._server.address(path))
        page.wait_for_selector(ready)
        page.wait_for_timeout(800)
        for key in keys:
            page.keyboard.press(key)
            page.wait_for_timeout(500)
        _saved(page, name)
        context.close()


def _saved(page: Page, name: str) -> None:
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path)
    size = path.stat().st_size
    assert size <= MOST_BYTES, f"{path} takes {size} bytes, which is too much for a repository"
    print(f"{path.relative_to(ROOT)}  {size:,} bytes")


def pictures(browser: Browser, server: Server, review: str) -> None:
    """All pictures of the page."""
    album = Album(browser, server)
    run = "orchestra-state[data-shown]"
    album.take("runs-light", "/", ready=".runs-list li", size=SHORT)
    album.take("run-light", "/runs/resilience?at=20", ready=run)
    album.take("run-dark", f"/runs/{review}?at=27", ready=run, dark=True)
    album.take("fork-dark", "/runs/resilience?at=14", "f", ready=run, dark=True)
    album.take("failure-dark", "/runs/resilience?at=0", "e", ready=run, dark=True)
    album.take("workflow-light", "/runs/review/workflow", ready=".phase-box", size=MIDDLE)
    album.take("conversation-light", "/runs/letters?tab=talk", ready=".message")
    album.take("narrow-dark", "/runs/resilience?at=20", ready=run, dark=True, size=NARROW)


def main() -> int:
    """Make every picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        url, said = played(Path(place))
        drawing = terminal(said)
        assert len(drawing) <= MOST_BYTES, "the terminal is too much for a repository"
        (FOLDER / "terminal.svg").write_text(drawing, encoding="utf-8")
        with open_store(url, create=False) as store:
            review = [row.run for row in store.runs(RunQuery()) if row.run.startswith("code-review_")][-1]
        program = next(filter(None, map(shutil.which, NAMES)), None)
        with sync_playwright() as playwright, serving(url) as server:
            browser = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-lcd-text"]
            )
            pictures(browser, server, review)
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
