"""What cannot be shown is said in its place; the rest stays usable. Never a blank page."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchmarks.record_demo import Recorded
from tests.browser.conftest import recorded_in
from tests.browser.site import Site, Watch, opened, selected, served
from tests.unit.cli.project import Project

Demo = tuple[str, list[Recorded]]


def test_an_unknown_run(page: Page, watch: Watch, site: Site) -> None:
    watch.expect(404)
    page.goto(site.address("/runs/nobody"))
    expect(page.get_by_role("alert")).to_contain_text("Not found")
    expect(page.get_by_role("alert")).to_contain_text("nobody")
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_an_unknown_address(page: Page, watch: Watch, site: Site) -> None:
    watch.expect(404)
    page.goto(site.address("/runs"))
    expect(page.locator("body")).not_to_be_empty()


def test_an_unknown_snapshot_shows_the_nearest(page: Page, watch: Watch, site: Site, demo: Demo) -> None:
    watch.expect(404)
    opened(page, site, f"/runs/{demo[1][0].run}?at=9999")
    assert selected(page) == 54
    expect(page.locator(".notice")).to_contain_text("There is no snapshot 9999")


@pytest.mark.parametrize(
    "query", ["at=&tab=&path=&pin=", "at=-1&tab=x&path=%7B&pin=%40%40", "path=[1,{}]&agent=&search=%00"]
)
def test_an_address_that_makes_no_sense_still_opens(
    page: Page, watch: Watch, site: Site, demo: Demo, query: str
) -> None:
    watch.expect(400, 404, 422)
    opened(page, site, f"/runs/{demo[1][0].run}?{query}")
    assert selected(page) >= 0


def test_a_wrong_token(page: Page, watch: Watch, site: Site, demo: Demo) -> None:
    watch.expect(401, 403)
    page.goto(f"{site.base}/runs/{demo[1][0].run}?token=wrong")
    expect(page.locator("body")).to_contain_text("needs the address that `orchestra browse` printed")


def test_a_token_that_no_longer_holds(page: Page, watch: Watch, site: Site, demo: Demo) -> None:
    watch.expect(401, 403)
    opened(page, site, f"/runs/{demo[1][0].run}?at=3")
    page.context.clear_cookies()
    page.keyboard.press("End")
    expect(page.get_by_role("alert").first).to_contain_text(re.compile("token", re.IGNORECASE))
    page.keyboard.press("Home")
    assert selected(page) == 0


def test_a_pruned_snapshot(page: Page, watch: Watch, tmp_path: Path) -> None:
    watch.expect(410)
    url = f"sqlite:{tmp_path / 'runs.db'}"
    run = recorded_in(url)[0].run
    project = Project(tmp_path)
    project.run("prune", run, "--days", "0", "--store", url)
    listed = project.json("snapshots", run, "--limit", "0", "--store", url)
    pruned = [row["seq"] for row in listed if row["pruned"]]
    with served(url) as site:
        opened(page, site, f"/runs/{run}")
        assert pruned
        page.goto(site.address(f"/runs/{run}?at={pruned[0]}"))
        expect(page.locator("orchestra-state").get_by_role("alert")).to_contain_text("Pruned")
        expect(page.locator(".list-row.selected .list-sign")).to_have_text("∅")
        page.keyboard.press("End")
        expect(page.get_by_role("tree", name="State")).to_be_visible()


def test_a_damaged_snapshot_leaves_the_rest(page: Page, watch: Watch, tmp_path: Path) -> None:
    watch.expect(422)
    file = tmp_path / "runs.db"
    run = recorded_in(f"sqlite:{file}")[0].run
    damaged = _damage(file, run, 30)
    with served(f"sqlite:{file}") as site:
        opened(page, site, f"/runs/{run}")
        page.keyboard.press("Home")
        expect(page.get_by_role("tree", name="State")).to_be_visible()
        page.goto(site.address(f"/runs/{run}?at={damaged}"))
        expect(page.locator("orchestra-run")).to_contain_text(re.compile("damaged", re.IGNORECASE))


def test_a_run_that_is_deleted_while_it_is_open(page: Page, watch: Watch, tmp_path: Path) -> None:
    watch.expect(404)
    url = f"sqlite:{tmp_path / 'runs.db'}"
    recorded = recorded_in(url)
    project = Project(tmp_path)
    with served(url) as site:
        run = recorded[1].run
        opened(page, site, f"/runs/{run}?at=13")
        project.run("delete", run, "--yes", "--store", url)
        expect(page.locator(".notice")).to_contain_text("deleted while it was open")
        expect(page.locator("orchestra-list")).to_contain_text("failed: security")


def _damage(file: Path, run: str, seq: int) -> int:
    """Spoil the patch of one snapshot."""
    with closing(sqlite3.connect(file)) as base, base:
        where = "seq = ? and run_no = (select run_no from runs where run = ?)"
        changed = base.execute(f"update rows set patch = zeroblob(40) where {where}", (seq, run))
        assert changed.rowcount == 1
    return seq
