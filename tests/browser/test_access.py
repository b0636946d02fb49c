"""The pages can be used by everybody: names, roles, contrast, targets, focus; both themes, three sizes."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from benchmarks.record_demo import Recorded
from tests.browser.conftest import NewPage
from tests.browser.site import Site, opened

Demo = tuple[str, list[Recorded]]
CHECK = (Path(__file__).parent / "access.js").read_text()
SIZES = {"wide": (1440, 900), "middle": (1024, 700), "narrow": (390, 844)}


def faults(page: Page) -> list[str]:
    """What is wrong with the page as it stands."""
    return [str(each) for each in page.evaluate(f"({CHECK[CHECK.index('() =>') :].rstrip()})()")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("tab", ["changes", "after", "sides"])
def test_the_run_page(new_page: NewPage, site: Site, demo: Demo, scheme: str, size: str, tab: str) -> None:
    width, height = SIZES[size]
    page = new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    opened(page, site, f"/runs/{demo[1][1].run}?at=14&tab={tab}&pin=3&agent=atlas&errors=1")
    page.wait_for_selector("orchestra-run[data-outline='42']")
    page.get_by_role("treeitem").first.click()
    assert faults(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["runs", "workflow"])
def test_the_other_pages(new_page: NewPage, site: Site, demo: Demo, scheme: str, name: str) -> None:
    page = new_page(color_scheme=scheme)
    path = "/" if name == "runs" else f"/runs/{demo[1][1].run}/workflow"
    opened(page, site, path, ready="orchestra-runs h1, orchestra-workflow h1")
    assert faults(page) == []


@pytest.mark.parametrize("key", ["?", "Control+k", "g"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dialogs(new_page: NewPage, site: Site, demo: Demo, scheme: str, key: str) -> None:
    page = new_page(color_scheme=scheme)
    opened(page, site, f"/runs/{demo[1][1].run}?at=14")
    page.keyboard.press(key)
    page.wait_for_selector("dialog[open]")
    assert faults(page) == []


def test_the_focus_can_be_seen_wherever_it_goes(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{demo[1][1].run}?at=14&pin=3")
    page.locator("body").focus()
    places = []
    for _ in range(60):
        page.keyboard.press("Tab")
        place = page.evaluate(
            "() => { const node = document.activeElement; const style = getComputedStyle(node);"
            " const name = `${node.tagName} ${node.className} ${node.getAttribute('aria-label') ?? ''}`;"
            " const outlined = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== 'none';"
            " return [name, outlined, node.getBoundingClientRect().width > 0]; }"
        )
        if place[0].startswith("BODY"):
            break
        places.append(place)
    assert len(places) > 25, "all controls are reached"
    assert [name for name, outlined, shown in places if not (outlined and shown)] == []


def test_the_whole_run_is_reached_by_keyboard_alone(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{demo[1][1].run}")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the run")).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("3")
    expect(page.locator("orchestra-state")).to_have_attribute("data-shown", "after 0 ")
    page.get_by_role("tree", name="State").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tree-row.selected")).to_contain_text("confidence")
    page.keyboard.press("Enter")
    expect(page.locator(".tree-row.selected")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("w")
    expect(page.locator(".value-answer")).to_contain_text("set it")


def test_changes_are_told_to_those_who_listen(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{demo[1][1].run}?at=9")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#announcer")).to_contain_text("Snapshot 10: ")


def test_what_happened_is_told_once_it_is_known(page: Page, site: Site, demo: Demo) -> None:
    held: list[Route] = []
    page.route("**/headlines?*", lambda route: held.append(route))
    opened(page, site, f"/runs/{demo[1][1].run}?at=9")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#announcer")).to_have_text("Snapshot 10")
    for route in held:
        route.continue_()
    expect(page.locator("#announcer")).to_contain_text("Snapshot 10: ")
