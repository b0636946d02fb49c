"""Runs and values that are large: few elements, values on demand, nothing frozen."""

import re
from collections.abc import Iterator

import anyio
import pytest
from playwright.sync_api import Page, Route, expect

from benchmarks.demo.long import great, long
from benchmarks.demo.stage import PlayClock, Stage
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.stores.registry import open_store
from tests.browser.conftest import START, apart
from tests.browser.site import Site, opened, selected, served

SNAPSHOTS = 2_000
BYTES = 7_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str, str]]:
    """A store with a long run and one with great values."""
    url = f"sqlite:{tmp_path_factory.mktemp('large') / 'runs.db'}"

    async def record() -> tuple[str, str]:
        clock = PlayClock(START)
        with open_store(url, create=True) as store:
            async with CheckpointManager(store, clock=clock, owner="large") as manager:
                many = await long(Stage(manager, store, clock, 1), SNAPSHOTS)
                return many, await great(Stage(manager, store, clock, 2), BYTES)

    many, one = apart(lambda: anyio.run(record))
    with served(url) as site:
        yield site, many, one


def test_a_long_run_has_few_rows(page: Page, large: tuple[Site, str, str]) -> None:
    site, many, _ = large
    opened(page, site, f"/runs/{many}")
    last = selected(page)
    assert last >= SNAPSHOTS - 1
    for key in ("Home", "PageDown", "PageDown", "End", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    assert selected(page) == last - 10
    expect(page.get_by_role("listbox").get_by_role("option", selected=True)).to_contain_text(str(last - 10))
    assert page.locator(".list-row").count() < 90
    page.get_by_role("listbox").evaluate("node => { node.scrollTop = 0; }")
    expect(page.get_by_role("option").filter(has_text="phase begins: phase-0")).to_be_visible()


JUMP = "seq => document.querySelector('orchestra-run').model.select(seq, { why: 'jump' })"


def test_after_a_jump_the_state_is_asked_for_first(page: Page, large: tuple[Site, str, str]) -> None:
    site, many, _ = large
    opened(page, site, f"/runs/{many}?at=1900")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2].partition("?")[0]))
    with page.expect_response(lambda response: "/headlines" in response.url):
        page.evaluate(JUMP, 700)
    ours = [name for name in asked if name in ("changes", "headlines")]
    assert ours[0] == "changes"
    expect(page.get_by_role("listbox").get_by_role("option", selected=True)).to_contain_text("700")


def test_a_state_that_does_not_come_keeps_nothing_else_waiting(
    page: Page, large: tuple[Site, str, str]
) -> None:
    site, many, _ = large
    opened(page, site, f"/runs/{many}?at=1900")
    held: list[Route] = []
    page.route("**/snapshots/300/changes", lambda route: held.append(route))
    with page.expect_response(lambda response: "/headlines" in response.url):
        page.evaluate(JUMP, 300)
    expect(page.get_by_role("region", name="Details of the snapshot")).not_to_have_class(re.compile("stale"))
    assert len(held) == 1
    held[0].continue_()
    expect(page.locator("orchestra-state")).to_have_attribute("data-shown", re.compile("changes 300 "))


def test_a_question_about_a_value_that_was_let_go_is_taken_back(
    page: Page, large: tuple[Site, str, str]
) -> None:
    site, many, _ = large
    opened(page, site, f"/runs/{many}?at=1900")
    held: list[Route] = []
    page.route("**/touches?*", lambda route: held.append(route))
    page.evaluate("document.querySelector('orchestra-run').model.setPath(['status'])")
    with page.expect_request("**/touches?*"):
        page.keyboard.press("[")
    with page.expect_event("requestfailed", lambda request: "/touches" in request.url):
        page.keyboard.press("Escape")
    expect(page.locator(".value-bar")).to_be_hidden()
    expect(page.locator("#toast.shown")).to_have_count(0)


def test_a_great_collection_comes_in_pages(page: Page, large: tuple[Site, str, str]) -> None:
    site, _, one = large
    opened(page, site, f"/runs/{one}?tab=after")
    tree = page.get_by_role("tree", name="State")
    for name in ("context", "table"):
        tree.locator(".tree-row").filter(has=page.get_by_text(name, exact=True)).locator(
            ".tree-twist"
        ).click()
    expect(tree).to_contain_text("row-000000")
    expect(tree).to_contain_text(f"{{{BYTES // 1040:,}}}")
    assert page.locator(".tree-row").count() < 90
    tree.evaluate("node => { node.scrollTop = 1004 * 24; }")
    tree.get_by_text("more: show the next").click()
    expect(tree).to_contain_text("row-001004")
    tree.evaluate("node => { node.scrollTop = 1500 * 24; }")
    expect(tree).to_contain_text("row-0014")


def test_a_text_that_is_too_large_shows_its_beginning(page: Page, large: tuple[Site, str, str]) -> None:
    site, _, one = large
    opened(page, site, f"/runs/{one}?tab=after")
    tree = page.get_by_role("tree", name="State")
    for name in ("context", "letter"):
        tree.locator(".tree-row").filter(has=page.get_by_text(name, exact=True)).locator(
            ".tree-twist"
        ).click()
    expect(tree).to_contain_text("The queue was read twice")
    tree.evaluate("node => { node.scrollTop = node.scrollHeight; }")
    expect(tree).to_contain_text("This is its beginning")
    assert page.locator(".tree-row").count() < 90
