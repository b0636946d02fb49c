"""The page of a workflow: its graph, and the way a run took through it."""

from playwright.sync_api import Browser, expect

from tests.browser.pages.house import Visitor, visiting
from tests.browser.site import Site


def test_phases_specialists_and_the_way_taken(visitor: Visitor) -> None:
    page = visitor.open("/runs/tough/workflow")
    boxes = page.locator(".phase-box")
    expect(boxes).to_have_count(3)
    assert [box.get_attribute("data-phase") for box in boxes.all()] == ["gather", "build", "tell"]
    expect(page.locator("[data-phase=gather]")).to_contain_text("unsure")
    expect(page.locator("[data-phase=gather]")).to_contain_text("after flaky")
    expect(page.locator(".graph-lines path.edge.taken")).to_have_count(3)
    expect(page.locator(".journey li")).to_have_count(3)
    places = [box.bounding_box() for box in boxes.all()]
    assert all(place is not None for place in places)
    lefts = [place["x"] for place in places if place is not None]
    assert lefts == sorted(lefts)
    assert len(set(lefts)) == 3


def test_where_a_run_did_not_get(visitor: Visitor) -> None:
    page = visitor.open("/runs/broken/workflow")
    expect(page.locator("[data-phase=p2]")).to_have_attribute("data-status", "current")
    expect(page.locator(".graph-lines path.edge.taken")).to_have_count(1)
    expect(page.locator(".graph-lines path.edge:not(.taken)")).to_have_count(1)


def test_a_phase_leads_to_its_snapshot(visitor: Visitor) -> None:
    page = visitor.open("/runs/tough/workflow")
    page.locator("[data-phase=tell] a").click()
    page.wait_for_url("**/runs/tough?at=*")
    expect(page.locator("orchestra-details")).to_contain_text("phase begins: tell")


def test_no_such_run(visitor: Visitor) -> None:
    visitor.watch.expect(404)
    page = visitor.open("/runs/nothing/workflow")
    expect(page.locator(".trouble")).to_contain_text("nothing")
    expect(page.get_by_role("link", name="Back to the run")).to_be_visible()


def test_on_a_narrow_screen_it_goes_downwards(chromium: Browser, house: Site) -> None:
    with visiting(chromium, house, narrow=True) as visitor:
        page = visitor.open("/runs/tough/workflow")
        boxes = page.locator(".phase-box")
        expect(boxes).to_have_count(3)
        places = [box.bounding_box() for box in boxes.all()]
        tops = [place["y"] for place in places if place is not None]
        assert tops == sorted(tops)
        assert len(set(tops)) == 3
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
