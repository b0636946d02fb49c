"""Text of a run is text: whatever it says, nothing of it is run, fetched or made an element."""

from collections.abc import Iterator

import anyio
import pytest
from playwright.sync_api import Page, expect

from orchestra.stores.registry import open_store
from tests.browser import hostile
from tests.browser.conftest import START, apart
from tests.browser.site import Site, Watch, opened, served

MADE = (
    "() => [globalThis.ran, document.title === 'ran', ({}).polluted,"
    " document.querySelectorAll('iframe, object, embed, base, form[action], main img, main style, main link,"
    ' main script, [onerror], [onload], [onclick], [onfocus], [ontoggle], a[href^="javascript"]\').length]'
)
NOTHING = [None, False, None, 0]


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A store with the run whose every text wants to be run."""
    url = f"sqlite:{tmp_path_factory.mktemp('hostile') / 'runs.db'}"

    def record() -> None:
        with open_store(url, create=True) as store:
            anyio.run(lambda: hostile.record(store, START))

    apart(record)
    with served(url) as site:
        yield site


def test_there_are_120_strings() -> None:
    assert len(set(hostile.STRINGS)) >= 117  # a few have no place for a code and are the same
    assert len(hostile.STRINGS) == 120


@pytest.mark.timeout(600)
def test_every_snapshot_of_a_hostile_run(page: Page, hostile_site: Site) -> None:
    opened(page, hostile_site, f"/runs/{hostile.RUN}?at=0")
    state, details = page.locator("orchestra-state"), page.locator("orchestra-details")
    for seq in range(1, 3 * len(hostile.STRINGS) + 1):
        page.keyboard.press("ArrowRight")
        if seq % 3 == 1:
            text = hostile.STRINGS[(seq - 1) // 3]
            expect(state).to_have_attribute("data-shown", f"changes {seq} ")
            expect(details).to_contain_text(text.strip()[:20])
    assert page.evaluate(MADE) == NOTHING


def test_every_tab_value_and_panel(page: Page, hostile_site: Site) -> None:
    opened(page, hostile_site, f"/runs/{hostile.RUN}?at=5")
    for tab in "1234":
        page.keyboard.press(tab)
        page.locator(".tree-twist:visible").first.click()
    page.keyboard.press("3")
    page.locator(".tree-row").filter(has_text="inputs").locator(".tree-twist").first.click()
    for key in hostile.KEYS:
        expect(page.get_by_role("tree", name="State")).to_contain_text(key)
    page.locator(".tree-row").filter(has_text="__proto__").first.click()
    page.keyboard.press("w")
    expect(page.locator(".value-answer")).to_contain_text("set it")
    page.get_by_role("button", name="Open alone").click()
    expect(page.locator(".alone-dialog")).to_contain_text(hostile.STRINGS[0][:20])
    page.get_by_role("button", name="Close", exact=True).click()
    page.keyboard.press("p")
    page.keyboard.press("End")
    page.keyboard.press("d")
    page.locator(".strip-stage").hover(position={"x": 400, "y": 30})
    page.get_by_role("button", name="Filter", exact=True).click()
    page.locator("#filter-panel input").first.check()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("<script>")
    page.keyboard.press("Enter")
    expect(page.locator(".search-note")).to_contain_text("hit")
    assert page.evaluate(MADE) == NOTHING


def test_what_models_and_tools_say_is_text(page: Page, hostile_site: Site) -> None:
    opened(page, hostile_site, f"/runs/{hostile.RUN}?tab=talk")
    picker = page.get_by_role("combobox", name="Whose conversation")
    for at in range(0, len(hostile.STRINGS), 4):
        picker.select_option(index=at)
        text = hostile.STRINGS[at]
        expect(page.locator(".said-text").first).to_have_text(text)
        expect(page.locator(".call-tool").first).to_have_text(text)
        for fold in page.locator(".message summary").all():
            fold.click()
        expect(page.locator(".said-reasoning").first).to_have_text(text)
        assert page.evaluate(MADE) == NOTHING


@pytest.mark.parametrize("path", ["/", f"/runs/{hostile.RUN}/workflow"])
def test_the_other_pages(page: Page, hostile_site: Site, path: str) -> None:
    opened(page, hostile_site, path, ready="orchestra-runs, orchestra-workflow")
    expect(page.locator("main")).to_contain_text("hostile")
    assert page.evaluate(MADE) == NOTHING


@pytest.mark.parametrize(
    "address", ["/runs/%3Cimg%20src%3Dx%20onerror%3Dran%3D1%3E", "/runs/x?at=%3Cscript%3E"]
)
def test_addresses_are_text_too(page: Page, watch: Watch, hostile_site: Site, address: str) -> None:
    watch.expect(404, 422)
    page.goto(hostile_site.address(address))
    expect(page.get_by_role("alert")).to_be_visible()
    assert page.evaluate(MADE) == NOTHING
