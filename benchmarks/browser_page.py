"""What a real Chromium measures on a page that a real server sends."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
from playwright.sync_api import Browser, CDPSession, Page

from benchmarks.browser_runs import OWNER
from benchmarks.figures import percentiles

ROOT: Final = Path(__file__).parents[1]
PATIENT_MS: Final = 60_000
_ADDRESS: Final = re.compile(r"(http://[^\s/]+)\S*[?&]token=([^\s&]+)")
_FRAMES: Final = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_SHOWN: Final = """
(seq) => new Promise((done) => {
  const state = document.querySelector("orchestra-state");
  const began = performance.now();
  const seen = new MutationObserver(() => { seen.disconnect(); done(performance.now() - began); });
  seen.observe(state, { attributes: true, attributeFilter: ["data-shown"] });
  document.querySelector("orchestra-run").model.select(seq, { why: "jump" });
})
"""
_PINNED: Final = """
(seq) => {
  const { model } = document.querySelector("orchestra-run");
  if (seq !== null) model.select(seq);
  model.pin(seq === null ? null : { run: model.run, seq });
}
"""
_COMPARED: Final = """
(seq) => new Promise((done) => {
  const counts = document.querySelector(".compare-counts");
  const began = performance.now();
  const seen = new MutationObserver(() => {
    if (/changed/.test(counts.textContent)) { seen.disconnect(); done(performance.now() - began); }
  });
  seen.observe(counts, { childList: true, characterData: true, subtree: true });
  document.querySelector("orchestra-run").model.select(seq, { why: "key" });
})
"""


@attrs.frozen(kw_only=True)
class Server:
    """`orchestra browse` over one store."""

    base: str
    token: str

    def address(self, path: str) -> str:
        """A path with the token."""
        return f"{self.base}{path}{'&' if '?' in path else '?'}token={self.token}"


@contextmanager
def serving(url: str, *options: str) -> Iterator[Server]:
    """A server in a process of its own."""
    command = [sys.executable, "-u", "-m", "orchestra", "browse", "--no-open", *options, "--store", url]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        found = next(filter(None, map(_ADDRESS.search, process.stdout)))
        yield Server(base=found[1], token=found[2])
    finally:
        process.terminate()
        process.communicate(timeout=30)


@contextmanager
def paged(browser: Browser) -> Iterator[Page]:
    """A page with an empty cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENT_MS)
    try:
        yield context.new_page()
    finally:
        context.close()


def usable_ms(browser: Browser, server: Server, path: str, repeats: int) -> list[float]:
    """From the navigation until the state is shown, each time with an empty cache."""
    return [_usable(browser, server, path) for _ in range(repeats)]


def _usable(browser: Browser, server: Server, path: str) -> float:
    with paged(browser) as page:
        page.goto(server.address("/api/info"))  # the token becomes a cookie; the page itself is not cached
        page.goto(f"{server.base}{path}")
        page.wait_for_selector("orchestra-state[data-shown]")
        mark = "performance.getEntriesByName('orchestra-usable')[0].startTime"
        return float(page.evaluate(mark))


def opened(page: Page, server: Server, path: str) -> CDPSession:
    """Open a path until it can be used, with a line to the browser itself."""
    page.goto(server.address(path))
    page.wait_for_selector("orchestra-state[data-shown]")
    page.wait_for_timeout(1500)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    return session


def metric(session: CDPSession, name: str) -> float:
    """One of the browser's own figures."""
    found: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in found if each["name"] == name))


def step_script_ms(page: Page, session: CDPSession, steps: int) -> tuple[float, float, float]:
    """Script time of single key steps: 50th, 95th and 99th percentile."""
    spent: list[float] = []
    idle = _idle_script_ms(page, session)
    for _ in range(steps):
        before = metric(session, "ScriptDuration")
        page.keyboard.press("ArrowLeft")
        page.evaluate(_FRAMES)
        spent.append(max(0.0, (metric(session, "ScriptDuration") - before) * 1000 - idle))
    return percentiles(spent)  # type: ignore[return-value]


def _idle_script_ms(page: Page, session: CDPSession) -> float:
    """What waiting for two frames costs by itself."""
    taken: list[float] = []
    for _ in range(20):
        before = metric(session, "ScriptDuration")
        page.evaluate(_FRAMES)
        taken.append((metric(session, "ScriptDuration") - before) * 1000)
    return statistics.median(taken)


def shown_ms(page: Page, seqs: Iterable[int]) -> list[float]:
    """From choosing a snapshot that was not looked at before until its state is shown."""
    found: list[float] = []
    for seq in seqs:
        found.append(float(page.evaluate(_SHOWN, seq)))
        page.wait_for_timeout(30)
    return found


def compared_ms(page: Page, pairs: list[tuple[int, int]]) -> list[float]:
    """From choosing B until what differs from A is told."""
    found: list[float] = []
    for one, other in pairs:
        page.evaluate(_PINNED, one)
        page.wait_for_timeout(200)
        found.append(float(page.evaluate(_COMPARED, other)))
        page.evaluate(_PINNED, None)
    return found


def weight(browser: Browser, server: Server, path: str) -> tuple[int, int, list[str]]:
    """Bytes on the wire of the page's own files, of everything, and who else was asked."""
    with paged(browser) as page:
        page.goto(server.address("/api/info"))
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        addresses: dict[str, str] = {}
        sizes: dict[str, int] = {}
        session.on(
            "Network.responseReceived",
            lambda said: addresses.update({said["requestId"]: said["response"]["url"]}),
        )
        session.on(
            "Network.loadingFinished",
            lambda said: sizes.update({said["requestId"]: said["encodedDataLength"]}),
        )
        page.goto(f"{server.base}{path}")
        page.wait_for_selector("orchestra-state[data-shown]")
        page.wait_for_timeout(1500)
        known = {addresses[key]: size for key, size in sizes.items() if key in addresses}
        own = sum(size for url, size in known.items() if "/api/" not in url)
        strangers = [url for url in known if not url.startswith((server.base, "data:"))]
        return int(own), int(sum(known.values())), strangers


@attrs.frozen(kw_only=True)
class Tail:
    """A run that was watched while it was written."""

    written: int
    seen: int
    rate: float
    heap_before: float
    heap_after: float
    nodes_before: float
    nodes_after: float


def tailed(browser: Browser, folder: Path, rate: float, seconds: float) -> Tail:
    """Watch a run that another process writes, at so many snapshots a second."""
    url = f"sqlite:{folder / f'live-{time.time_ns()}.db'}"
    command = [sys.executable, "-m", "benchmarks.browser_runs", "live", url, str(rate), str(seconds)]
    writer = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdin is not None and writer.stdout is not None  # noqa: PT018
    try:
        run = writer.stdout.readline().strip()
        with serving(url, "--read-only") as server, paged(browser) as page:
            session = opened_live(page, server, run)
            writer.stdin.write("go\n")
            writer.stdin.flush()
            page.wait_for_timeout(min(10.0, seconds / 4) * 1000)
            before = _heap(session)
            began = time.monotonic()
            while writer.poll() is None:
                page.wait_for_timeout(500)
                assert time.monotonic() - began < seconds * 3 + 60, f"{OWNER}: the writer does not end"
            written = round(rate * seconds) + 2
            seen = _seen(page, written)
            after = _heap(session)
    finally:
        writer.kill()
        writer.wait()
    return Tail(
        written=written,
        seen=seen,
        rate=rate,
        heap_before=before[0],
        heap_after=after[0],
        nodes_before=before[1],
        nodes_after=after[1],
    )


def _seen(page: Page, written: int) -> int:
    """How many snapshots the page knows of, once it has had time for those on the way."""
    end = time.monotonic() + PATIENT_MS / 1000
    while True:
        seen = int(page.evaluate("() => document.querySelector('orchestra-run').model.columns.count"))
        if seen >= written or time.monotonic() > end:
            return seen
        page.wait_for_timeout(200)


def opened_live(page: Page, server: Server, run: str) -> CDPSession:
    """Open a run that goes on; its connection stays open, so there is no quiet to wait for."""
    page.goto(server.address(f"/runs/{run}"))
    page.wait_for_selector("orchestra-state[data-shown]")
    page.wait_for_timeout(1000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("HeapProfiler.enable")
    return session


def _heap(session: CDPSession) -> tuple[float, float]:
    session.send("HeapProfiler.collectGarbage")
    return metric(session, "JSHeapUsedSize"), metric(session, "Nodes")
