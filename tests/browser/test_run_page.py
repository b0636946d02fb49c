"""The run page in a real browser: moving, looking, finding, comparing."""

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect

from benchmarks.record_demo import Recorded
from tests.browser.conftest import NewPage
from tests.browser.site import Site, Watch, opened, selected

Demo = tuple[str, list[Recorded]]


def _first(demo: Demo) -> str:
    return demo[1][0].run


def _rolled_back(demo: Demo) -> str:
    return demo[1][1].run


def _row(page: Page) -> Locator:
    return page.get_by_role("listbox").get_by_role("option", selected=True)


def _at(page: Page, number: int) -> None:
    expect(page.get_by_role("slider", name="Snapshot")).to_have_attribute("aria-valuenow", str(number))


def test_a_run_opens_at_its_newest_snapshot(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_first(demo)}")
    assert selected(page) == 54
    expect(page.get_by_role("heading", level=1)).to_contain_text("code-review")
    expect(page.locator(".run-standing")).to_have_text("✔ completed")
    expect(_row(page)).to_contain_text("ended: completed")
    expect(page.locator(".readout")).to_contain_text("#54 of 54")


def test_keys_move_through_time(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_first(demo)}?at=20")
    for key, at in (
        ("ArrowRight", 21),
        ("ArrowLeft", 20),
        ("Shift+ArrowRight", 30),
        ("Shift+ArrowLeft", 20),
        ("j", 21),
        ("k", 20),
        ("PageDown", 26),
        ("PageUp", 20),
        ("Home", 0),
        ("End", 54),
    ):
        page.keyboard.press(key)
        assert selected(page) == at, key
    page.keyboard.press("ArrowRight")
    assert selected(page) == 54, "there is nothing after the last"


def test_slider_says_where_it_is(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_rolled_back(demo)}?at=13")
    slider = page.get_by_role("slider", name="Snapshot")
    expect(slider).to_have_attribute("aria-valuetext", "snapshot 13 of 42, mercury-security and atlas, error")
    expect(slider).to_have_attribute("aria-valuemax", "42")


def test_the_mouse_scrubs(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_first(demo)}")
    box = page.locator(".strip-stage").bounding_box()
    assert box is not None
    y = box["y"] + 40
    page.mouse.move(box["x"] + 4, y)
    page.mouse.down()
    assert selected(page) == 0
    page.mouse.move(box["x"] + box["width"] / 2, y, steps=12)
    middle = selected(page)
    assert 10 < middle < 45
    page.mouse.move(box["x"] + box["width"] - 4, y, steps=12)
    page.mouse.up()
    assert selected(page) == 54
    page.mouse.move(box["x"] + 40, y)
    expect(page.locator(".strip-tip")).to_be_visible()


def test_brush_and_wheel_zoom_the_strip(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_first(demo)}")
    box = page.locator(".strip-stage").bounding_box()
    assert box is not None
    whole = page.locator(".overview-window.whole")
    expect(whole).to_have_count(1)
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 300, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + 50, steps=5)
    page.mouse.up()
    page.keyboard.up("Shift")
    expect(whole).to_have_count(0)
    assert selected(page) == 54, "to zoom is not to move"
    page.locator(".strip-stage").dblclick(position={"x": 5, "y": 50})
    expect(whole).to_have_count(1)
    page.mouse.wheel(0, -300)
    expect(whole).to_have_count(0)


def test_a_row_is_clicked(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_first(demo)}?at=20")
    page.get_by_role("option").filter(has_text="judged: revise").click()
    assert selected(page) == 25
    expect(page.locator("orchestra-details")).to_contain_text("Snapshot 25")


def test_play_steps_by_itself_and_stops(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_first(demo)}?at=50")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    _at(page, 54)
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_errors_forks_and_rollbacks_have_keys(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_rolled_back(demo)}?at=0")
    page.wait_for_selector("orchestra-run[data-outline='42']")
    page.keyboard.press("e")
    assert selected(page) == 10
    page.keyboard.press("e")
    assert selected(page) == 13
    page.keyboard.press("E")
    assert selected(page) == 10
    page.keyboard.press("b")
    assert selected(page) == 15
    expect(_row(page)).to_contain_text("rolled back")


def test_letters_are_letters_in_a_field(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_first(demo)}?at=20")
    page.keyboard.press("/")
    page.keyboard.type("jkepdwfrlnyg? [ ]")
    assert selected(page) == 20
    expect(page.get_by_role("searchbox")).to_have_value("jkepdwfrlnyg? [ ]")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_go_to_a_number(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_first(demo)}")
    page.keyboard.press("g")
    page.keyboard.type("17")
    page.keyboard.press("Enter")
    expect(page.locator(".readout")).to_contain_text("#17 of 54")


def test_filters_are_chips_and_stand_in_the_address(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_rolled_back(demo)}")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.locator("#filter-panel").get_by_label("mercury-writer").check()
    page.keyboard.press("Escape")
    shown = page.locator("orchestra-list .pane-head")
    expect(shown).to_contain_text("15 of 43")
    expect(page.locator(".chip")).to_have_text("agent: mercury-writer×")
    page.wait_for_url(re.compile("agent=mercury-writer"))
    page.reload()
    page.wait_for_selector("orchestra-strip")
    expect(shown).to_contain_text("15 of 43")
    page.keyboard.press("Home")
    assert selected(page) == 25, "moving keeps to what is shown"
    page.get_by_role("button", name="Remove the filter agent: mercury-writer").click()
    page.get_by_role("button", name="✖ Errors").click()
    expect(shown).to_contain_text("3 of 43")


def test_search_marks_its_hits(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_rolled_back(demo)}?at=0")
    page.keyboard.press("/")
    page.keyboard.type("advisory server")
    page.keyboard.press("Enter")
    expect(page.locator(".search-note")).to_contain_text("hits")
    page.wait_for_selector(".search[aria-busy=false]")
    first = selected(page)
    assert first > 0
    expect(page.locator(".list-row.hit").first).to_be_visible()
    page.keyboard.press("n")
    second = selected(page)
    assert second > first
    page.keyboard.press("N")
    assert selected(page) == first
    page.wait_for_url(re.compile("search=advisory"))
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator(".list-row.hit")).to_have_count(0)


def test_the_first_snapshot_where_a_condition_holds(page: Page, watch: Watch, site: Site, demo: Demo) -> None:
    watch.expect(400)
    opened(page, site, f"/runs/{_rolled_back(demo)}")
    page.get_by_label("What to search for").select_option("where")
    page.get_by_role("searchbox").fill("status == 'failed'")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator(".search-note")).to_contain_text("first at #14")
    assert selected(page) == 14
    page.get_by_role("searchbox").fill("status == ")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator(".search-note")).not_to_contain_text("first")


def test_changes_before_after_side_by_side(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_rolled_back(demo)}?at=14")
    tree = page.get_by_role("tree", name="State")
    expect(tree).to_contain_text("status")
    expect(tree).to_contain_text('"running"')
    expect(tree).to_contain_text('"failed"')
    page.keyboard.press("2")
    expect(tree.get_by_role("treeitem").filter(has_text=re.compile(r"^status"))).to_contain_text("running")
    page.keyboard.press("3")
    expect(tree.get_by_role("treeitem").filter(has_text=re.compile(r"^~status"))).to_contain_text("failed")
    page.keyboard.press("4")
    expect(page.locator(".sides-head")).to_contain_text("After #14")
    expect(tree.get_by_role("treeitem").filter(has_text=re.compile(r"^~status"))).to_contain_text("running")


def test_any_two_snapshots_are_compared(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_rolled_back(demo)}?at=14")
    page.keyboard.press("p")
    bar = page.get_by_role("region", name="Compare")
    expect(bar).to_contain_text("A and B are the same")
    page.keyboard.press("End")
    expect(bar).to_contain_text("changed")
    expect(page.get_by_role("tree", name="State")).to_contain_text("completed")
    page.keyboard.press("d")
    expect(page.locator(".sides-head")).to_contain_text("A #14")
    bar.get_by_role("button", name="Swap A and B").click()
    assert selected(page) == 14
    bar.get_by_role("combobox").fill(f"{_first(demo)}@54")
    bar.get_by_role("combobox").press("Enter")
    expect(page.locator(".sides-head")).to_contain_text(f"{_first(demo)}@54")
    page.get_by_role("button", name="Let A go").click()
    expect(bar).to_be_hidden()


def test_who_set_this(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_rolled_back(demo)}?at=14&tab=after")
    tree = page.get_by_role("tree", name="State")
    tree.get_by_role("treeitem").filter(has_text=re.compile("^▸?confidence")).first.click()
    page.keyboard.press("Enter")
    tree.get_by_role("treeitem").filter(has_text=re.compile("^overall")).first.click()
    value = page.get_by_role("region", name="Selected value")
    expect(value).to_contain_text("confidence.overall")
    page.keyboard.press("w")
    expect(value).to_contain_text("set it at")
    value.get_by_role("button", name=re.compile("Go to #")).click()
    assert selected(page) == 8
    page.keyboard.press("]")
    expect(value.locator(".value-times")).to_contain_text("of")
    assert selected(page) > 8
    page.keyboard.press("Escape")
    expect(value).to_be_hidden()


def test_a_permalink_opens_the_same_view(page: Page, new_page: NewPage, site: Site, demo: Demo) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, site, f"/runs/{_rolled_back(demo)}?at=14&tab=sides&agent=atlas&pin=3")
    page.keyboard.press("y")
    expect(page.locator("#toast")).to_have_text("Link copied")
    link = page.evaluate("navigator.clipboard.readText()")
    query = parse_qs(urlsplit(link).query)
    assert query["at"] == ["14"]
    assert query["tab"] == ["sides"]
    assert query["agent"] == ["atlas"]
    other = new_page()
    opened(other, site, link.removeprefix(site.base))
    assert selected(other) == 14
    expect(other.get_by_role("tab", name="Side by side")).to_have_attribute("aria-selected", "true")
    expect(other.get_by_role("region", name="Compare")).to_be_visible()
    expect(other.locator(".chip")).to_contain_text("atlas")


def test_escape_steps_back(page: Page, site: Site, demo: Demo) -> None:
    opened(page, site, f"/runs/{_rolled_back(demo)}?at=14&pin=3")
    page.get_by_role("treeitem").first.click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Selected value")).to_be_hidden()
    expect(page.get_by_role("region", name="Compare")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Compare")).to_be_hidden()


def test_one_pane_at_a_time_on_a_narrow_screen(new_page: NewPage, site: Site, demo: Demo) -> None:
    page = new_page(viewport={"width": 390, "height": 844})
    opened(page, site, f"/runs/{_first(demo)}?at=20")
    expect(page.get_by_role("tree", name="State")).to_be_visible()
    expect(page.get_by_role("listbox")).to_be_hidden()
    page.get_by_role("tab", name="Snapshots").click()
    page.get_by_role("option").filter(has_text="judged: revise").click()
    assert selected(page) == 25
    page.get_by_role("tab", name="Details").click()
    expect(page.locator("orchestra-details")).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390, "nothing stands out at the side"


def test_the_theme_is_chosen_and_kept(new_page: NewPage, site: Site, demo: Demo) -> None:
    page = new_page(color_scheme="dark")
    opened(page, site, f"/runs/{_first(demo)}")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Theme").click()
    light = page.evaluate(background)
    assert dark != light
    page.reload()
    page.wait_for_selector("orchestra-strip")
    assert page.evaluate(background) == light
