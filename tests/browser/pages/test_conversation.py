"""What agents and their models say, in the page: read at any moment, live while it streams, and answered."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.ids import AgentId, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Part
from orchestra.model.state import WorkflowRef
from orchestra.stores.registry import open_store
from tests.browser.conftest import START, apart
from tests.browser.hostile import Clock
from tests.browser.pages.house import Visitor, file_address, house_of, visiting
from tests.browser.site import PATIENT_MS, Site, Watch, selected, served
from tests.browser.test_access import faults
from tests.llm.provider import ProviderClient, provider_in_thread
from tests.unit.cli.project import Project

TOOLS = '''
def search(query: str, limit: int = 3) -> list[dict]:
    """Search."""
    return [{"title": f"On {query}, part {n}", "pages": 100 + n} for n in range(limit)]

def read(title: str) -> str:
    """Read."""
    raise LookupError(f"there is no {title}")

def send_letter(to: str, text: str) -> str:
    """Send a letter."""
    return f"sent to {to}: {text}"
'''
FLOW = """
name: letters
agents:
  clerk: {{path: {agent}.md, risky: [send_letter]}}
phases:
  draft: {{specialists: {{clerk: {{agent: clerk, task: "Write to the harbour master."}}}}}}
"""
LETTER = {"to": "harbour master", "text": "Dear harbour master, may we measure?"}
REPORT = "All of it was looked at, word by word. " * 600
LAST = "The letter is sent, and the harbour master will answer when there is time for it."


def _script(gate: str | None) -> list[Any]:
    gates = [] if gate is None else [{"name": gate, "after": 6}]
    return [
        {
            "reasoning": "First I search.",
            "text": "I look that up.",
            "calls": [
                {"name": "search", "arguments": {"query": "tides"}},
                {"name": "read", "arguments": {"title": "On tides"}},
            ],
        },
        {"text": "I write a letter.", "calls": [{"name": "send_letter", "arguments": LETTER}]},
        {"text": LAST, "gates": gates},
    ]


SCRIPT = {
    "conversations": [
        {"name": "long", "match": "You are long", "turns": [{"text": REPORT}]},
        {
            "name": "broken",
            "match": "You break off",
            "turns": [{"text": LAST, "faults": [{"kind": "drop", "after": 4}]}],
        },
        {"name": "live", "match": "You are live", "turns": _script("half")},
        {"name": "clerk", "match": "You are a clerk", "turns": _script(None)},
    ]
}


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderClient]:
    """A provider for every run of this file, each playing a conversation of its own."""
    with provider_in_thread(SCRIPT) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", made.url("chat"))
        patch.setenv("OPENAI_API_KEY", "sk-for-tests")
        yield made


def _project(folder: Path, agent: str, says: str) -> Project:
    made = Project(folder)
    (folder / "tools.py").write_text(TOOLS)
    (folder / f"{agent}.md").write_text(
        f"---\nname: {agent}\nmodel: openai-chat:scripted\ntools: tools.py\n---\n{says}\n"
    )
    (folder / f"{agent}.yaml").write_text(FLOW.format(agent=agent))
    return made


@pytest.fixture(scope="module")
def letters(provider: ProviderClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A run that waits for leave to call a tool, one with a long answer, and one of the test model."""
    made = _project(tmp_path_factory.mktemp("letters"), "clerk", "You are a clerk. " + "Be exact. " * 40)
    made.run("run", "clerk.yaml", "--run-id", "letters", code=3)
    _project(made.folder, "long", "You are long")
    made.run("run", "long.yaml", "--run-id", "long")
    _project(made.folder, "broken", "You break off")
    made.run("run", "broken.yaml", "--run-id", "broken")
    made.run("run", "clerk.yaml", "--model", "test", "--run-id", "tested", code=3)
    yield made
    made.close()


@pytest.fixture(scope="module")
def desk(letters: Project) -> Iterator[Site]:
    with house_of(letters) as site:
        yield site


@pytest.fixture
def reader(chromium: Browser, desk: Site) -> Iterator[Visitor]:
    with visiting(chromium, desk) as found:
        yield found


def _talk(visitor: Visitor, run: str, at: int | str = "") -> Page:
    """A run with its conversation open."""
    visitor.open(f"/runs/{run}?tab=talk" + (f"&at={at}" if at != "" else ""))
    visitor.page.locator("orchestra-run[data-outline]").wait_for()
    visitor.page.locator("orchestra-state[data-shown^=talk]").wait_for()
    return visitor.page


def _messages(page: Page) -> Locator:
    return page.locator("orchestra-conversation .message")


# --- reading


def test_it_is_opened_by_a_key_and_says_who_said_what(reader: Visitor) -> None:
    page = reader.run("letters")
    reader.press("c")
    rows = _messages(page)
    expect(rows.locator("h3")).to_have_text(["system", "user", "assistant", "assistant"])
    expect(page.get_by_role("region", name="Conversation")).to_be_focused()
    first, second = rows.nth(2), rows.nth(3)
    expect(first).to_contain_text("I look that up.")
    expect(first.get_by_text("First I search.")).to_be_hidden()
    first.get_by_text("Reasoning").click()
    expect(first.get_by_text("First I search.")).to_be_visible()
    search, read = first.locator(".call").all()
    expect(search).to_contain_text('query: "tides"}')
    expect(search.locator(".call-status")).to_contain_text("done")
    search.locator("summary").click()
    expect(search.locator("pre")).to_contain_text('"title": "On tides, part 2"')
    expect(read.locator(".call-status")).to_contain_text("failed")
    expect(read).to_contain_text("LookupError: there is no On tides")
    expect(first.locator(".said-facts")).to_contain_text(
        re.compile(r"openai-chat:scripted.* in, .* out.*no known price.*ms")
    )
    expect(second.locator(".call-status")).to_contain_text("waits for approval")
    expect(second.locator(".call-status")).to_contain_text("risky")
    page.wait_for_url(re.compile("tab=talk"))


def test_it_is_opened_from_the_name_of_an_agent(reader: Visitor) -> None:
    page = reader.run("letters")
    page.locator("orchestra-details").get_by_role("button", name="clerk", exact=True).first.click()
    expect(page.get_by_role("tab", name="Conversation")).to_have_attribute("aria-selected", "true")
    expect(_messages(page)).to_have_count(4)


def test_a_run_without_models_has_no_such_tab(visitor: Visitor) -> None:
    page = visitor.run("whole")
    expect(page.get_by_role("tab", name="Conversation")).to_be_hidden()
    visitor.press("c")
    expect(page.locator(".toast")).to_contain_text("No agent of this run has talked to a language model")


def test_a_message_is_a_moment_to_go_to_and_to_fork_from(reader: Visitor) -> None:
    page = _talk(reader, "letters")
    button = _messages(page).nth(2).get_by_role("button", name="#")
    at = int((button.text_content() or "").removeprefix("#"))
    button.click()
    expect(_messages(page)).to_have_count(3)
    assert selected(page) == at
    expect(_messages(page).last.locator(".call-status").first).to_contain_text("not called yet")
    expect(page.locator(".talk-end")).to_contain_text(f"As it stood at #{at}, 1 message before the end")
    page.get_by_role("button", name="Go to the end").click()
    expect(_messages(page)).to_have_count(4)
    _messages(page).nth(2).get_by_role("button", name="Fork from").click()
    expect(page.locator("dialog[open] h2")).to_have_text(f"Fork from snapshot {at}")
    reader.press("Escape")
    reader.press("Home")
    expect(page.locator(".talk-end")).to_contain_text("Nothing was said by #0")


def test_what_broke_off_stays_and_says_so(reader: Visitor) -> None:
    page = _talk(reader, "broken")
    broken, whole = _messages(page).nth(2), _messages(page).nth(3)
    expect(broken.locator(".said-facts")).to_contain_text(re.compile("error.*superseded"))
    expect(broken.locator(".said-other")).to_contain_text("Error")
    expect(whole.locator(".said-text")).to_have_text(LAST)
    assert [row.get_attribute("data-status") for row in (broken, whole)] == ["error", "complete"]


def test_a_long_text_is_cut_and_there_when_it_is_asked_for(reader: Visitor) -> None:
    page = _talk(reader, "long")
    said = _messages(page).last
    expect(said.get_by_role("button", name="Show all")).to_have_text(f"Show all {len(REPORT):,} characters")
    said.get_by_role("button", name="Show all").click()
    expect(said.get_by_role("button", name="Show all")).to_be_hidden()
    assert said.locator(".said-text").text_content() == REPORT


def test_of_a_long_conversation_the_earlier_part_is_asked_for(chromium: Browser, tmp_path: Path) -> None:
    url, run = f"sqlite:{tmp_path / 'runs.db'}", RunId("long")
    at, agent, task = START, AgentId("clerk"), TaskId("work/clerk")

    async def record() -> None:
        async with CheckpointManager(store, clock=Clock(START), owner="test") as manager:
            active = await manager.begin(
                ev.RunStarted(at=at, run=run, workflow=WorkflowRef(name="long")),
                ev.PhaseStarted(at=at, phase=PhaseId("work")),
                ev.TaskPlanned(at=at, task=task, agent=agent, phase=PhaseId("work")),
                ev.AgentLaunched(at=at, agent=agent, task=task, attempt=1, role="mercury"),
            )
            for number in range(150):
                part = Part(kind="text", text=f"This is said as number {number}.")
                said = ev.MessagePosted(
                    at=at, message=f"{task}#{number}", role="user", agent=agent, task=task, parts=(part,)
                )
                await manager.record(active, [said])
            await manager.release(active)

    with open_store(url, create=True) as store:
        apart(lambda: anyio.run(record))
    with served(url) as site, visiting(chromium, site) as found:
        page = _talk(found, "long")
        scroll = page.locator(".talk-scroll")
        expect(_messages(page)).to_have_count(60)
        expect(_messages(page).last).to_be_in_viewport()
        for left, shown in ((90, 120), (30, 150)):
            scroll.evaluate("node => { node.scrollTop = 0; }")
            seen = _messages(page).first
            text = seen.locator(".said-text").text_content() or ""
            page.get_by_role("button", name=f"{left} earlier messages").click()
            expect(_messages(page)).to_have_count(shown)
            expect(page.locator(".message").filter(has_text=text)).to_be_in_viewport()
        expect(page.locator(".talk-earlier")).to_be_hidden()


def test_a_run_of_the_test_model(reader: Visitor) -> None:
    page = _talk(reader, "tested")
    expect(_messages(page).last.locator(".said-facts")).to_contain_text("test")
    expect(page.locator(".talk-scroll")).to_contain_text("send_letter")


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("run", ["letters", "broken"])
def test_everybody_can_use_it(chromium: Browser, desk: Site, run: str, dark: bool, narrow: bool) -> None:
    with visiting(chromium, desk, dark=dark, narrow=narrow) as found:
        page = _talk(found, run)
        for fold in page.locator(".message summary").all():
            fold.click()
        assert faults(page) == []
        wide = page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert wide, "nothing sticks out"
        if run == "letters":
            page.locator(".talk-scroll").get_by_role("button", name="Answer…").click()
            page.locator("dialog[open]").wait_for()
            assert faults(page) == []


def test_the_file_shows_the_same(chromium: Browser, letters: Project, tmp_path: Path) -> None:
    path = tmp_path / "letters.html"
    letters.run("export", "letters", "--html", str(path))
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(PATIENT_MS)
    watch, file = Watch(context), context.new_page()
    with house_of(letters, "--read-only") as site, visiting(chromium, site) as found:
        page = _talk(found, "letters", 0)
        file.goto(f"{file_address(path)}#/runs/letters?tab=talk&at=0")
        file.locator("orchestra-run[data-outline]").wait_for()
        for at in range(len(letters.json("snapshots", "letters"))):
            for each in (page, file):
                each.locator(f"orchestra-state[data-shown^='talk {at} ']").wait_for()
            shown = page.locator(".talk-scroll").text_content() or ""
            expect(file.locator(".talk-scroll")).to_have_text(shown)
            for each in (page, file):
                each.keyboard.press("1")
                each.locator(f"orchestra-state[data-shown='changes {at} ']").wait_for()
            told = page.locator(".state-summary").text_content() or ""
            expect(file.locator(".state-summary")).to_have_text(told)
            for each in (page, file):
                each.keyboard.press("c")
                each.keyboard.press("ArrowRight")
    context.close()
    assert watch.faults() == []


# --- while it goes on


@pytest.fixture
def own_provider(provider: ProviderClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProviderClient:
    """The provider, with gates that nobody else opens."""
    session = provider.in_session(tmp_path.name)
    session.install(SCRIPT)
    monkeypatch.setenv("OPENAI_BASE_URL", session.url("chat"))
    return session


@pytest.fixture
def live(own_provider: ProviderClient, tmp_path: Path) -> Iterator[Project]:
    """A run of the test's own that waits for leave to call a tool."""
    made = _project(tmp_path, "clerk", "You are live")
    made.run("run", "clerk.yaml", "--run-id", "letters", code=3)
    yield made
    made.close()


def _ask(page: Page) -> Locator:
    """The dialog of the open question, with nothing chosen."""
    page.locator(".talk-scroll").get_by_role("button", name="Answer…").click()
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("May clerk call send_letter?")
    expect(dialog.get_by_role("radio", checked=True)).to_have_count(0)
    expect(dialog.get_by_role("button", name="Answer", exact=True)).to_be_disabled()
    return dialog


def test_a_call_is_allowed_with_other_arguments_and_the_answer_streams(
    chromium: Browser, live: Project, own_provider: ProviderClient
) -> None:
    with house_of(live) as site, visiting(chromium, site) as found:
        page = _talk(found, "letters")
        page.set_viewport_size({"width": 1440, "height": 600})
        dialog = _ask(page)
        arguments = dialog.get_by_label("Arguments")
        answer = dialog.get_by_role("button", name="Answer", exact=True)
        assert json.loads(arguments.input_value()) == LETTER
        dialog.get_by_label("approve").check()
        for wrong, said in (('{"to": ', "This is not JSON"), ("[1]", "This must be an object")):
            arguments.fill(wrong)
            expect(dialog.get_by_role("alert").first).to_contain_text(said)
            expect(arguments).to_have_attribute("aria-invalid", "true")
            expect(answer).to_be_disabled()
        arguments.fill(json.dumps({**LETTER, "text": "<b>Short.</b>"}))
        expect(dialog).to_contain_text("the tool is called with what stands here")
        answer.click()
        own_provider.wait_for("half")
        last = _messages(page).nth(4)
        expect(last.locator(".said-facts")).to_contain_text("streaming")
        expect(last.locator(".said-text")).to_have_text(re.compile("^The letter"))
        page.locator(".talk-scroll").evaluate(
            "node => { node.scrollTop = 0;"
            " globalThis.kept = node.querySelector('.message:last-child .said-text').firstChild; }"
        )
        own_provider.open_gate("half")
        expect(last.locator(".said-text")).to_have_text(LAST)
        expect(last.locator(".said-facts")).not_to_contain_text("streaming")
        expect(page.locator(".run-standing")).to_contain_text("completed")
        call = _messages(page).nth(3).locator(".call")
        expect(call).to_contain_text("sent to harbour master: <b>Short.</b>")
        expect(call).to_contain_text("approved by a person, with changed arguments")
        moved = page.evaluate("[document.querySelector('.talk-scroll').scrollTop, kept.isConnected]")
        assert moved == [0, True], "nothing jumps, and what was said is only added to"
    (record,) = [each for each in live.json("show", "letters", "tool_calls").values() if each["risky"]]
    assert record["attempts"] == 1


def test_a_call_is_refused_whatever_stands_in_its_arguments(
    chromium: Browser, live: Project, own_provider: ProviderClient
) -> None:
    with house_of(live) as site, visiting(chromium, site) as found:
        page = _talk(found, "letters")
        dialog = _ask(page)
        dialog.get_by_label("Arguments").fill("{")
        dialog.get_by_label("refuse").check()
        dialog.get_by_role("button", name="Answer", exact=True).click()
        own_provider.wait_for("half")
        own_provider.open_gate("half")
        call = _messages(page).nth(3).locator(".call")
        expect(call.locator(".call-status")).to_contain_text("refused")
        expect(call).to_contain_text("refused by a person")
        expect(page.locator(".run-standing")).to_contain_text("completed")


def test_where_nothing_may_be_changed_nothing_can_be_answered(chromium: Browser, letters: Project) -> None:
    with house_of(letters, "--read-only") as site, visiting(chromium, site) as found:
        page = _talk(found, "letters")
        expect(page.locator(".talk-scroll")).to_contain_text("It can be answered with orchestra answer")
        expect(page.locator(".talk-scroll").get_by_role("button", name="Answer…")).to_have_count(0)
        expect(page.locator(".talk-scroll").get_by_role("button", name="Fork from")).to_have_count(0)
