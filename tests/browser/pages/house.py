"""A project that is served, and somebody who looks at its pages and counts every key and click."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Locator, Page

from tests.browser.site import PATIENT_MS, Site, Watch, served
from tests.unit.cli.project import Project


@contextmanager
def house_of(project: Project, *options: str) -> Iterator[Site]:
    """The browser over a project's store, for as long as the block lasts."""
    with served(store_of(project), *options, folder=project.folder) as site:
        yield site


def store_of(project: Project) -> str:
    """The URL of a project's store."""
    return f"sqlite:{project.folder / 'outputs/orchestra.db'}"


class Visitor:
    """Somebody who looks at the page: opens addresses, presses keys, clicks, and counts both."""

    def __init__(self, site: Site, context: BrowserContext) -> None:
        self.site = site
        context.set_default_timeout(PATIENT_MS)
        self.watch = Watch(context)
        self.page = context.new_page()
        self.steps = 0

    def open(self, path: str) -> Page:
        """Open an address of the server, with its token."""
        self.page.goto(self.site.address(path))
        return self.page

    def run(self, run: str, at: int | None = None) -> Page:
        """Open a run and wait until all of it is there."""
        self.open(f"/runs/{run}" + ("" if at is None else f"?at={at}"))
        self.page.locator("orchestra-run[data-outline]").wait_for()
        self.page.locator("orchestra-state[data-shown]").wait_for()
        self.page.locator("orchestra-details .details-summary").wait_for(state="attached")
        return self.page

    def press(self, *keys: str) -> None:
        """Press keys, one after the other; each counts."""
        for key in keys:
            self.page.keyboard.press(key)
            self.steps += 1

    def click(self, where: str | Locator) -> None:
        """Click; that counts as well."""
        found = self.page.locator(where) if isinstance(where, str) else where
        found.first.click()
        self.steps += 1

    def leave(self) -> None:
        """Go; nothing may have been complained about, and nobody else asked."""
        self.page.context.close()
        assert self.watch.faults() == []


@contextmanager
def visiting(browser: Browser, site: Site, *, dark: bool = False, narrow: bool = False) -> Iterator[Visitor]:
    """A visitor with a window of their own."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844} if narrow else {"width": 1440, "height": 900},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    found = Visitor(site, context)
    try:
        yield found
        found.leave()
    finally:
        context.close()


def changed(page: Page, name: str) -> Locator:
    """The row about a value in the list of changes."""
    return page.locator("orchestra-state [role=treeitem]").filter(has_text=re.compile(rf"^\W*{name}\b"))


def file_address(path: Path) -> str:
    """The address of a file."""
    return path.resolve().as_uri()
