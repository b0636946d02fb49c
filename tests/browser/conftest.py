"""What the tests in a real browser share: Chromium, recorded runs, a served store, pages that are watched.

Chromium is the system's (Debian's `chromium`). Where there is none the tests are left out, except where CI is
set: there they must run.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from benchmarks.record_demo import Recorded, record
from orchestra.ids import Instant
from orchestra.stores.registry import open_store
from tests.browser.site import PATIENT_MS, Site, Watch, served

NAMES = ("chromium", "chromium-browser", "google-chrome")
START = Instant(1_763_200_000_000_000)

NewPage = Callable[..., Page]
T = TypeVar("T")
expect.set_options(timeout=PATIENT_MS)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's Chromium, without a screen. Its loop runs in this thread, so it ends with its module."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        assert not os.environ.get("CI"), "CI needs Chromium for these tests: install Debian's chromium"
        pytest.skip("there is no Chromium on this machine: install Debian's chromium to run these tests")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Recorded]]:
    """A store with the four demo runs: its URL, and the runs. Not to be changed."""
    url = f"sqlite:{tmp_path_factory.mktemp('demo') / 'runs.db'}"
    return url, recorded_in(url)


def recorded_in(url: str, runs: int = 3) -> list[Recorded]:
    """Record demo runs in a store."""

    def work() -> list[Recorded]:
        with open_store(url, create=True) as store:
            return anyio.run(lambda: record(store, runs=runs, seed=7, start=START))

    return apart(work)


def apart(work: Callable[[], T]) -> T:
    """Do something in a thread of its own: Playwright has a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


@pytest.fixture(scope="session")
def site(demo: tuple[str, list[Recorded]]) -> Iterator[Site]:
    """The demo store, served read-only."""
    with served(demo[0], "--read-only") as running:
        yield running


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[tuple[Site, list[Recorded]]]:
    """A store of this test's own with the demo runs, served with actions."""
    url = f"sqlite:{tmp_path / 'runs.db'}"
    recorded = recorded_in(url)
    with served(url, folder=tmp_path) as running:
        yield running, recorded


@pytest.fixture
def new_page(chromium: Browser) -> Iterator[NewPage]:
    """Makes pages in fresh contexts; at the end none of them may have complained or called anybody else."""
    contexts: list[tuple[BrowserContext, Watch]] = []

    def make(**options: object) -> Page:
        viewport = {"width": 1440, "height": 900}
        context = chromium.new_context(**{"viewport": viewport, "reduced_motion": "reduce", **options})  # type: ignore[arg-type]
        context.set_default_timeout(PATIENT_MS)
        watch = Watch(context)
        contexts.append((context, watch))
        page = context.new_page()
        watches[page] = watch
        return page

    yield make
    faults = [fault for _, watch in contexts for fault in watch.faults()]
    for context, _ in contexts:
        context.close()
    assert not faults, "\n".join(faults)


watches: dict[Page, Watch] = {}


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """A page that is watched."""
    return new_page()


@pytest.fixture
def watch(page: Page) -> Watch:
    """What was heard of `page`."""
    return watches[page]
