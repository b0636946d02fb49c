"""A run that another process plays, watched while it goes on."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site, Watch, opened, selected, served
from tests.unit.cli.project import Project, ended

TALKER = '''
"""Says as many words, and saves as often, as the file `words` allows; ends when it says stop."""
import asyncio
from pathlib import Path
async def agent(ctx):
    said = 0
    Path("began").touch()
    while True:
        text = Path("words").read_text() if Path("words").exists() else ""
        if text == "stop":
            return said
        while said < int(text or "0"):
            said += 1
            ctx.emit(f"word-{said} ")
            await ctx.save({"said": said}, progress=min(0.99, said / 1000), step=f"step {said}")
        await asyncio.sleep(0.01)
'''


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project with an agent that talks."""
    project = Project(tmp_path)
    (tmp_path / "talker.py").write_text(TALKER)
    yield project
    project.close()


@pytest.fixture
def live(project: Project) -> Iterator[Site]:
    """A run that is being played by a process of its own, served by another."""
    project.workflow("talker")
    process = project.start("run", "flow.yaml", "--run-id", "r1", "--quiet")
    project.wait_for("began", process)
    with served(f"sqlite:{project.folder / 'outputs' / 'orchestra.db'}", folder=project.folder) as site:
        yield site
    (project.folder / "words").write_text("stop")
    ended(process, 0)


def _say(project: Project, words: int | str) -> None:
    new = project.folder / "words.new"
    new.write_text(str(words))
    new.rename(project.folder / "words")


def test_a_live_run_is_followed_and_its_text_appears(page: Page, live: Site, project: Project) -> None:
    opened(page, live, "/runs/r1")
    expect(page.locator(".run-standing")).to_contain_text("running")
    expect(page.get_by_role("button", name="● Following")).to_be_visible()
    _say(project, 3)
    row = page.get_by_role("listbox").get_by_role("option", selected=True)
    expect(row).to_contain_text("step 3")
    expect(page.locator(".speech")).to_contain_text("word-1 word-2 word-3")
    at = selected(page)
    _say(project, 6)
    expect(row).to_contain_text("step 6")
    assert selected(page) > at
    _say(project, "stop")
    expect(page.locator(".run-standing")).to_contain_text("completed")


def test_what_somebody_looks_at_does_not_move(page: Page, live: Site, project: Project) -> None:
    _say(project, 40)
    opened(page, live, "/runs/r1")
    expect(page.get_by_role("listbox").get_by_role("option", selected=True)).to_contain_text("step 40")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="○ Follow")).to_be_visible()
    scroller = page.get_by_role("listbox")
    top = scroller.evaluate("node => node.scrollTop")
    _say(project, 60)
    pill = page.locator(".pill")
    expect(pill).to_have_text(re.compile(r"^20 new$"))
    assert selected(page) == 1
    assert scroller.evaluate("node => node.scrollTop") == top
    pill.click()
    expect(page.get_by_role("listbox").get_by_role("option", selected=True)).to_contain_text("step 60")
    expect(pill).to_be_hidden()


def test_nothing_is_missed_when_many_come_at_once(page: Page, live: Site, project: Project) -> None:
    opened(page, live, "/runs/r1")
    _say(project, 400)
    expect(page.get_by_role("listbox").get_by_role("option", selected=True)).to_contain_text("step 400")
    seqs = page.evaluate(
        "() => { const c = document.querySelector('orchestra-run').model.columns;"
        " return Array.from({length: c.count}, (_, i) => c.seqAt(i)); }"
    )
    assert seqs == list(range(len(seqs)))
    rows = page.locator(".list-row").count()
    assert rows < 100, "rows are used again"


def test_a_connection_that_is_lost_is_said_and_made_again(page: Page, watch: Watch, project: Project) -> None:
    watch.expect(503)  # what was asked while the server was being stopped
    _say(project, 5)
    project.workflow("talker")
    process = project.start("run", "flow.yaml", "--run-id", "r1", "--quiet")
    project.wait_for("began", process)
    store = f"sqlite:{project.folder / 'outputs' / 'orchestra.db'}"
    with served(store, folder=project.folder) as first:
        opened(page, first, "/runs/r1")
        expect(page.get_by_role("listbox").get_by_role("option", selected=True)).to_contain_text("step 5")
    expect(page.locator(".connection")).to_contain_text("connection lost")
    expect(page.locator("orchestra-list")).to_contain_text("step 5")
    page.goto("about:blank")
    _say(project, "stop")
    ended(process, 0)
