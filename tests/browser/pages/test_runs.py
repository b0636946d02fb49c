"""The runs page."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.pages.house import Visitor, house_of, visiting
from tests.browser.site import Site
from tests.unit.cli.project import Project


def test_every_run_with_its_standing(visitor: Visitor) -> None:
    page = visitor.open("/")
    rows = page.locator(".runs-list li")
    expect(rows).to_have_count(4)
    said = {row.get_attribute("data-run"): row.inner_text() for row in rows.all()}
    assert "completed" in said["whole"]
    assert "failed" in said["broken"]
    assert "RuntimeError: it is broken" in said["broken"]
    assert "waiting" in said["asked"]
    assert "1 question to answer" in said["asked"]
    expect(page.locator("[data-run=tough] .spark-line")).to_have_count(1)
    expect(page.locator(".runs-total")).to_have_text("4 runs")


def test_filter_and_search_are_kept_in_the_address(visitor: Visitor) -> None:
    page = visitor.open("/")
    page.locator(".chip[data-status=failed]").click()
    expect(page.locator(".runs-list li")).to_have_count(1)
    expect(page.locator(".chip[data-status=failed]")).to_have_attribute("aria-pressed", "true")
    page.wait_for_url("**/?status=failed")
    page.reload()
    expect(page.locator(".runs-list li")).to_have_count(1)
    page.locator(".chip[data-status='']").click()
    page.locator(".runs-search").fill("tou")
    expect(page.locator(".runs-list li")).to_have_count(1)
    page.locator(".runs-search").fill("nothing like it")
    expect(page.locator(".empty")).to_contain_text("No run matches.")
    page.get_by_role("button", name="Show all runs").click()
    expect(page.locator(".runs-list li")).to_have_count(4)


def test_by_keyboard_alone(visitor: Visitor) -> None:
    page = visitor.open("/")
    expect(page.locator(".runs-list li")).to_have_count(4)
    visitor.press("j", "j", "k", "j")
    second = page.locator(".runs-list li").nth(1).get_attribute("data-run")
    expect(page.locator("a.run-row:focus")).to_have_count(1)
    visitor.press("/")
    expect(page.locator(".runs-search")).to_be_focused()
    page.keyboard.type("jk")
    expect(page.locator(".runs-search")).to_have_value("jk")
    page.locator(".runs-search").fill("")
    expect(page.locator(".runs-list li")).to_have_count(4)
    visitor.press("Escape", "j", "j", "Enter")
    page.wait_for_url(f"**/runs/{second}*")
    expect(page.locator("orchestra-run")).to_be_visible()


def test_a_run_that_begins_while_the_page_is_open(actor: Visitor, own: Project) -> None:
    page = actor.open("/")
    expect(page.locator(".runs-list li")).to_have_count(1)
    process = own.start("run", "flow.yaml", "--run-id", "r2")
    own.wait_for("began", process)
    row = page.locator("[data-run=r2]")
    expect(row).to_contain_text("running")
    row.locator("a").focus()
    own.go()
    expect(row).to_contain_text("completed")
    expect(row.locator("a")).to_be_focused()
    process.communicate()


@pytest.mark.parametrize("options", [(), ("--read-only",)])
def test_an_empty_store_says_what_to_run(chromium: Browser, own: Project, options: tuple[str, ...]) -> None:
    own.workflow("quick")
    own.run("run", "flow.yaml", "--run-id", "r1")
    own.run("delete", "r1", "--yes")
    with house_of(own, *options) as house, visiting(chromium, house) as visitor:
        page = visitor.open("/")
        expect(page.locator(".empty")).to_contain_text("There is no run in this store yet.")
        expect(page.locator(".empty code")).to_have_text("orchestra run configs/code_review.yaml")


def test_narrow_and_dark(chromium: Browser, house: Site) -> None:
    with visiting(chromium, house, dark=True, narrow=True) as visitor:
        page = visitor.open("/")
        expect(page.locator(".runs-list li")).to_have_count(4)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"
