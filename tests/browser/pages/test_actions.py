"""What can be done to a run from the page, each after it was said what it would mean."""

from playwright.sync_api import Browser, Route, expect

from tests.browser.pages.house import Visitor, house_of, visiting
from tests.unit.cli.project import Project


def test_fork_with_an_edited_value_and_see_the_new_run_go(actor: Visitor, own: Project) -> None:
    page = actor.run("r1", at=1)
    actor.press("f")
    dialog = page.locator("dialog[open]")
    expect(dialog.locator(".plan")).to_contain_text("A new run begins at @1")
    expect(dialog).to_contain_text("This run is not touched.")
    field = dialog.get_by_label("inputs.topic")
    expect(field).to_have_value("tea")
    expect(field).to_be_focused()
    field.fill("coffee")
    expect(dialog.locator(".values-box h3")).to_contain_text("1 changed")
    expect(dialog.locator(".plan")).to_contain_text("Runs again")
    dialog.get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: "/runs/r1" not in url)
    expect(page.locator("orchestra-run")).to_contain_text("running")
    own.go()
    expect(page.locator("orchestra-run")).to_contain_text("completed")
    made = next(row["run"] for row in own.json("runs") if row["run"] != "r1")
    assert own.json("show", made, "inputs.topic") == "coffee"
    assert own.json("show", "r1", "inputs.topic") == "tea"


def test_what_cannot_be_read_is_not_sent(actor: Visitor) -> None:
    page = actor.run("r1", at=1)
    actor.press("f")
    dialog = page.locator("dialog[open]")
    fork = dialog.get_by_role("button", name="Fork", exact=True)
    expect(fork).to_be_enabled()
    field = dialog.get_by_label("inputs.topic")
    field.fill('{"half": ')
    expect(dialog.locator(".value-problem:visible")).to_contain_text("This is not JSON")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(fork).to_be_disabled()
    field.fill("1e")
    expect(dialog.locator(".value-problem:visible")).to_contain_text("looks like a number")
    field.fill("two words")
    expect(dialog.locator(".value-problem:visible")).to_have_count(0)
    expect(fork).to_be_enabled()
    dialog.get_by_role("button", name="Set another value").click()
    dialog.get_by_label("Path of the value").fill("status")
    expect(dialog.locator(".value-problem:visible")).to_contain_text("inputs.NAME or context.NAME")
    expect(fork).to_be_disabled()
    actor.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_value_that_the_server_refuses_is_said_in_the_dialog(actor: Visitor) -> None:
    actor.watch.expect(409)
    page = actor.run("r1", at=1)
    actor.press("f")
    dialog = page.locator("dialog[open]")
    dialog.get_by_role("button", name="Set another value").click()
    dialog.get_by_label("Path of the value").fill("inputs.unknown")
    expect(dialog.locator(".dialog-trouble")).to_contain_text("inputs.topic")
    expect(dialog.get_by_role("button", name="Fork", exact=True)).to_be_disabled()


def test_a_value_that_is_added_while_the_others_are_read_stays(actor: Visitor) -> None:
    held: list[Route] = []
    page = actor.run("r1", at=1)
    page.route("**/state?*", lambda route: held.append(route))
    actor.press("f")
    dialog = page.locator("dialog[open]")
    dialog.get_by_role("button", name="Set another value").click()
    dialog.get_by_label("Path of the value").fill("inputs.")
    for each in held:
        each.continue_()
    expect(dialog.get_by_text("inputs.topic").first).to_be_visible()
    expect(dialog.get_by_label("Path of the value")).to_have_value("inputs.")
    assert held, "the values were read before anything was added"


def test_roll_back_and_go_on(chromium: Browser, own: Project) -> None:
    own.workflow("quick", "breaks")
    own.run("run", "flow.yaml", "--run-id", "r1", code=1)
    (own.folder / "repaired").touch()
    with house_of(own) as house, visiting(chromium, house) as actor:
        page = actor.run("r1", at=1)
        page.get_by_role("button", name="Roll back to here…").click()
        dialog = page.locator("dialog[open]")
        expect(dialog.locator(".plan")).to_contain_text("goes back from")
        expect(dialog.locator(".plan")).to_contain_text("Runs again")
        dialog.get_by_label("Why").fill("it was repaired")
        dialog.get_by_role("button", name="Roll back", exact=True).click()
        expect(page.locator("orchestra-run")).to_contain_text("completed")
    assert own.status("r1") == "completed"
    assert own.json("show", "r1", "rollbacks")[0]["reason"] == "it was repaired"


def test_answer_a_question(chromium: Browser, own: Project) -> None:
    own.workflow("quick", "asks")
    own.run("run", "flow.yaml", "--run-id", "r1", code=3)
    with house_of(own) as house, visiting(chromium, house) as actor:
        page = actor.run("r1")
        box = page.locator("orchestra-details .tone-warn-box")
        expect(box).to_contain_text("Publish?")
        box.get_by_role("button", name="Answer…").click()
        dialog = page.locator("dialog[open]")
        dialog.get_by_label("no").check()
        dialog.get_by_role("button", name="Answer", exact=True).click()
        expect(page.locator("orchestra-details .tone-warn-box")).to_have_count(0)
        expect(page.locator("orchestra-run")).to_contain_text("completed")
    waits = own.json("show", "r1", "waits")
    assert [wait["answer"] for wait in waits.values()] == ["no"]


def test_answer_with_what_was_handed_in_and_go_on_later(chromium: Browser, own: Project) -> None:
    (own.folder / "detailed.py").write_text(
        "async def agent(ctx):\n    return await ctx.ask('Ship it?', details={'version': '<b>7.1</b>'})\n"
    )
    own.workflow("detailed")
    own.run("run", "flow.yaml", "--run-id", "r1", code=3)
    with house_of(own) as house, visiting(chromium, house) as actor:
        page = actor.run("r1")
        page.locator("orchestra-details").get_by_role("button", name="Answer…").click()
        dialog = page.locator("dialog[open]")
        expect(dialog.get_by_label("Details")).to_contain_text("<b>7.1</b>")
        dialog.get_by_label("Your answer").fill("yes")
        dialog.get_by_label("Go on with the run here at once").uncheck()
        dialog.get_by_role("button", name="Answer", exact=True).click()
        expect(page.locator("orchestra-details .tone-warn-box")).to_have_count(0)
        page.keyboard.press("End")
        expect(page.locator("orchestra-details")).to_contain_text('answered: "yes" (to: Ship it?)')
    assert own.status("r1") == "paused"


def test_resume_says_what_goes_on(chromium: Browser, own: Project) -> None:
    own.workflow("quick", "breaks")
    own.run("run", "flow.yaml", "--run-id", "r1", code=1)
    (own.folder / "repaired").touch()
    with house_of(own) as house, visiting(chromium, house) as actor:
        page = actor.run("r1")
        actor.press("r")
        dialog = page.locator("dialog[open]")
        expect(dialog.locator(".plan")).to_contain_text("r1 goes on from")
        dialog.get_by_role("button", name="Resume", exact=True).click()
        expect(page.locator("orchestra-run")).to_contain_text("completed")


def test_pin_and_note(actor: Visitor, own: Project) -> None:
    page = actor.run("r1", at=1)
    details = page.locator("orchestra-details")
    details.get_by_role("button", name="Pin", exact=True).click()
    expect(details.locator(".details-head")).to_contain_text("pinned")
    details.get_by_role("button", name="Note…").click()
    page.get_by_label("Note", exact=True).fill("<b>look</b> here")
    page.get_by_role("button", name="Save").click()
    expect(details).to_contain_text("<b>look</b> here")
    assert own.json("snapshots", "r1")[1]["note"] is not None
    details.get_by_role("button", name="Unpin").click()
    expect(details.get_by_role("button", name="Pin", exact=True)).to_be_visible()


def test_a_page_that_only_reads(chromium: Browser, own: Project) -> None:
    own.workflow("quick", "breaks")
    own.run("run", "flow.yaml", "--run-id", "r1", code=1)
    with house_of(own, "--read-only") as house, visiting(chromium, house) as visitor:
        visitor.watch.expect(403)
        page = visitor.run("r1", at=1)
        actions = page.locator("orchestra-details .details-actions")
        expect(actions).to_contain_text("Read-only: nothing can be changed from here.")
        expect(actions.locator("button")).to_have_count(0)
        visitor.press("f", "r")
        expect(page.locator("dialog[open]")).to_have_count(0)
        refused = page.evaluate(
            "fetch('/api/runs/r1/pin', {method: 'POST', body: '{\"at\": 1, \"on\": true}',"
            " headers: {'Content-Type': 'application/json'}}).then((answer) => answer.status)"
        )
        assert refused == 403
