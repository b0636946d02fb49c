"""A run in one file: opened from a disk, without a server, it shows the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestra.cli.store import archive
from orchestra.ids import RunId
from orchestra.web.bundle.file import gather_run
from tests.browser.pages.house import Visitor, changed, file_address, store_of
from tests.browser.site import PATIENT_MS, Watch
from tests.unit.cli.project import Project

HOSTILE = (
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "-->]]><svg onload=window.hit=1>",
    "\u2028window.hit=1//",
    "{{constructor.constructor('window.hit=1')()}}",
    "javascript:window.hit=1",
)


@pytest.fixture(scope="module")
def bundle(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that had most trouble, in one file."""
    path = tmp_path_factory.mktemp("bundle") / "tough.html"
    project.run("export", "tough", "--html", str(path))
    return path


@pytest.fixture
def offline(chromium: Browser) -> Iterator[Page]:
    """A page that is watched; it may ask for nothing but the file itself."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(PATIENT_MS)
    watch, asked = Watch(context), list[str]()
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert watch.faults() == []
    assert {each.partition("#")[0].endswith(".html") for each in asked if each[:5] != "data:"} == {True}


def test_it_opens_from_a_file(bundle: Path, offline: Page) -> None:
    offline.goto(file_address(bundle))
    expect(offline.locator("orchestra-details .details-head")).to_contain_text("verified")
    expect(offline.locator("orchestra-list")).to_contain_text("ended: completed")
    offline.locator("orchestra-run[data-outline]").wait_for()
    expect(offline.locator("orchestra-state")).to_contain_text("completed")
    expect(offline.locator("orchestra-details .details-actions")).to_contain_text("A bundle: read-only.")
    offline.keyboard.press("Home")
    offline.keyboard.press("e")
    expect(offline.locator("orchestra-details .tone-bad-box").first).to_contain_text("crash 1 of 2")
    expect(offline.locator("orchestra-details .stack pre")).to_contain_text("in agent: raise RuntimeError")
    offline.keyboard.press("f")
    expect(offline.locator("dialog[open]")).to_have_count(0)


def test_its_addresses_lead_back_to_the_same_place(bundle: Path, offline: Page) -> None:
    offline.goto(f"{file_address(bundle)}#/runs/tough?at=13")
    expect(offline.locator("orchestra-details h2")).to_have_text("Snapshot 13")
    expect(offline.locator("orchestra-details .decision")).to_contain_text("Spawn additional specialist")
    offline.get_by_role("link", name="Workflow").or_(offline.get_by_role("button", name="Workflow")).click()
    expect(offline.locator(".phase-box")).to_have_count(3)
    offline.locator("[data-phase=build] a").click()
    expect(offline.locator("orchestra-details")).to_contain_text("phase begins: build")


def test_searching_and_blaming_without_a_server(bundle: Path, offline: Page) -> None:
    offline.goto(file_address(bundle))
    offline.locator("orchestra-details .details-summary").wait_for()
    offline.keyboard.press("/")
    offline.keyboard.type("second opinion")
    offline.keyboard.press("Enter")
    expect(offline.locator(".search-note")).to_contain_text("hits")
    offline.keyboard.press("Escape")
    offline.goto(f"{file_address(bundle)}#/runs/tough?at=25")
    changed(offline, "status").first.click()
    offline.keyboard.press("w")
    expect(offline.locator(".value-answer")).to_contain_text("ended: completed")


def test_it_can_be_read_where_scripts_are_held_to_the_file(bundle: Path) -> None:
    text = bundle.read_text(encoding="utf-8")
    policy = text.split('http-equiv="Content-Security-Policy" content="', 1)[1].split('"', 1)[0]
    assert "default-src &#x27;none&#x27;" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert text.count("<script") == 3
    assert text.count("</script") == 3


def test_hostile_text_stays_text(chromium: Browser, own: Project) -> None:
    said = json.dumps(HOSTILE)
    (own.folder / "quick.py").write_text(
        f"import json\nSAID = json.loads({said!r})\n"
        "async def agent(ctx):\n"
        "    for each in SAID:\n"
        "        await ctx.decide(each, rationale=each, alternatives=[each])\n"
        "    return SAID\n"
    )
    own.workflow("quick")
    own.run("run", "flow.yaml", "--run-id", "r1")
    own.run("note", "r1@1", HOSTILE[0])
    path = own.folder / "out.html"
    own.run("export", "r1", "--html", str(path))
    context = chromium.new_context()
    watch, page = Watch(context), context.new_page()
    page.goto(file_address(path))
    page.locator("orchestra-details .details-summary").wait_for()
    for at, each in enumerate(HOSTILE, start=1):
        page.goto(f"{file_address(path)}#/runs/r1?at={at}")
        expect(page.locator("orchestra-details .chosen")).to_contain_text(each.strip("\u2028"))
    assert page.evaluate("window.hit") is None
    context.close()
    assert watch.faults() == []


COMPARE = """
async ({ data, run }) => {
  const { BundleSource } = await import("/page/bundle.js");
  const { HttpSource } = await import("/page/source.js");
  const [file, server] = [new BundleSource(data), new HttpSource()];
  const found = [];
  const sorted = (value) => Array.isArray(value) ? value.map(sorted)
    : value !== null && typeof value === "object"
      ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])])) : value;
  const check = (what, one, other) => {
    const [mine, theirs] = [JSON.stringify(sorted(one)), JSON.stringify(sorted(other))];
    if (mine !== theirs) found.push(`${what}: ${mine.slice(0, 400)} instead of ${theirs.slice(0, 400)}`);
  };
  const byPath = (changes) => [...changes].sort((a, b) => (a.text < b.text ? -1 : 1));
  const states = async (seq) => {
    const [mine, theirs] = await Promise.all([file.state(run, seq), server.state(run, seq)]);
    check(`state ${seq}`, mine.value, theirs.value);
  };
  const changes = async (seq) => {
    const [mine, theirs] = await Promise.all([file.changes(run, seq), server.changes(run, seq)]);
    check(`changes of ${seq}`, byPath(mine.changes), byPath(theirs.changes));
    check(`counts of ${seq}`, [mine.counts, mine.from, mine.to], [theirs.counts, theirs.from, theirs.to]);
  };
  const { head } = await server.run(run);
  for (let seq = head; seq >= 0; seq -= 1) {
    await states(seq);
    await changes(seq);
    const [mine, theirs] = await Promise.all([file.snapshot(run, seq), server.snapshot(run, seq)]);
    check(`snapshot ${seq}`, mine, theirs);
  }
  for (const path of [["status"], ["tasks"], ["completed_tasks"], ["agents", "quick", "status"]]) {
    const asked = [file, server].map((each) => each.blame(run, head, path).catch((failure) => failure));
    const [mine, theirs] = await Promise.all(asked);
    check(`blame ${path}`, [mine.seq, mine.who, mine.after], [theirs.seq, theirs.who, theirs.after]);
    if (mine instanceof Error) continue;
    check(`touches ${path}`, await file.touches(run, path), await server.touches(run, path));
  }
  const [from, to] = [{ run, seq: 2 }, { run, seq: head }];
  const diffs = await Promise.all([file, server].map((each) => each.diff(from, to)));
  check("diff", ...diffs.map((each) => byPath(each.changes)));
  for (const q of ["completed", "OPINION"]) {
    const hits = [[], []];
    await Promise.all([file, server].map((each, at) => each.search(run, q, (hit) => hits[at].push(hit))));
    check(`search ${q}`, ...hits.map((each) => [...new Set(each.map((hit) => hit.seq))]));
  }
  for (const name of ["decisions", "questions", "workflow", "outline"]) {
    check(name, await file[name](run), await server[name](run));
  }
  check("columns", (await file.snapshots(run)).columns, (await server.snapshots(run)).columns);
  return found;
}
"""


@pytest.mark.parametrize("run", ["tough", "broken", "asked"])
def test_a_file_answers_as_the_server_does(visitor: Visitor, project: Project, run: str) -> None:
    visitor.watch.expect(404)
    with archive(store_of(project)) as opened:
        data: dict[str, Any] = gather_run(opened, RunId(run))
    page = visitor.open("/")
    expect(page.locator(".runs-list li").first).to_be_visible()
    assert page.evaluate(COMPARE, {"data": data, "run": run}) == []
