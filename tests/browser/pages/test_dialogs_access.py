"""Dialogs and pages with everything on them can be used by everybody, light and dark, wide and narrow."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.pages.house import visiting
from tests.browser.site import Site
from tests.browser.test_access import faults


def _fork(page: Page) -> None:
    page.keyboard.press("f")
    expect(page.locator("dialog[open] .plan")).to_contain_text("A new run begins")
    page.locator("dialog[open]").get_by_role("button", name="Set another value").click()
    page.get_by_label("Path of the value").fill("status")
    expect(page.locator("dialog[open] .value-problem:visible")).to_have_count(1)


def _family(page: Page) -> None:
    page.get_by_role("button", name="Family").click()
    expect(page.locator("dialog[open] .family-list li").first).to_be_visible()


def _failure(page: Page) -> None:
    page.keyboard.press("e")
    expect(page.locator("orchestra-details .tone-bad-box").first).to_be_visible()


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("show", [_fork, _family, _failure])
def test_what_is_opened_from_a_run(
    chromium: Browser, house: Site, show: Callable[[Page], None], dark: bool, narrow: bool
) -> None:
    with visiting(chromium, house, dark=dark, narrow=narrow) as visitor:
        visitor.run("tough", at=1)
        if narrow:
            visitor.page.get_by_role("tab", name="Details").click()
        show(visitor.page)
        assert faults(visitor.page) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_graph_with_ways_not_taken(chromium: Browser, house: Site, dark: bool) -> None:
    with visiting(chromium, house, dark=dark) as visitor:
        page = visitor.open("/runs/broken/workflow")
        expect(page.locator(".phase-box")).to_have_count(2)
        assert faults(page) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_question(chromium: Browser, house: Site, dark: bool) -> None:
    with visiting(chromium, house, dark=dark) as visitor:
        page = visitor.run("asked")
        page.locator("orchestra-details .tone-warn-box button").click()
        expect(page.locator("dialog[open]")).to_contain_text("Publish?")
        assert faults(page) == []
