"""The newcomer's five questions, each answered in fewer than five keys or clicks, as the help says."""

from playwright.sync_api import expect

from tests.browser.pages.house import Visitor, changed
from tests.unit.cli.project import Project

FEW = 5


def test_why_did_it_fail(visitor: Visitor) -> None:
    page = visitor.run("broken", at=0)
    visitor.press("e")
    box = page.locator("orchestra-details .tone-bad-box").first
    expect(box).to_contain_text("RuntimeError: it is broken")
    expect(box.locator("pre")).to_contain_text("in agent: raise RuntimeError")
    expect(box.locator("pre")).to_contain_text("frames of orchestra")
    assert visitor.steps < FEW


def test_who_set_this_value(visitor: Visitor) -> None:
    page = visitor.run("whole")
    visitor.click(changed(page, "status"))
    visitor.press("w")
    expect(page.locator(".value-answer")).to_contain_text("set it at")
    expect(page.locator(".value-answer")).to_contain_text("ended: completed")
    assert visitor.steps < FEW


def test_what_changed_between_these_two_moments(visitor: Visitor) -> None:
    page = visitor.run("tough", at=5)
    visitor.press("p", "End", "d")
    bar = page.locator(".compare")
    expect(bar.locator("input")).to_have_value("#5")
    expect(bar.locator(".compare-counts")).to_contain_text("changed")
    assert visitor.steps < FEW


def test_what_else_was_considered_here(visitor: Visitor) -> None:
    page = visitor.run("tough", at=0)
    visitor.click("orchestra-list [role=option]:has-text('decided: Hand in the opinion') >> nth=0")
    decision = page.locator("orchestra-details .decision")
    expect(decision).to_contain_text("Hand in the opinion as it is")
    expect(decision).to_contain_text("more looking would not make it surer")
    expect(decision.locator(".alternatives li")).to_have_text(["keep looking", "give up"])
    assert visitor.steps < FEW


def test_what_was_considered_before_a_moment_at_which_nothing_was_decided(visitor: Visitor) -> None:
    page = visitor.run("tough", at=18)
    details = page.locator("orchestra-details")
    expect(details).to_contain_text("Latest decision, at #13")
    details.get_by_role("button", name="#13").click()
    expect(details.locator("h2")).to_have_text("Snapshot 13")


def test_can_i_try_again_from_here_with_this_changed(actor: Visitor) -> None:
    page = actor.run("r1", at=1)
    actor.press("f")
    field = page.locator("dialog[open]").get_by_label("inputs.topic")
    expect(field).to_be_focused()
    page.keyboard.type("x")
    actor.steps += 1
    expect(page.locator("dialog[open] .values-box h3")).to_contain_text("1 changed")
    expect(page.locator("dialog[open] button[type=submit]")).to_be_enabled()
    actor.press("Enter")
    page.wait_for_url(lambda url: "/runs/r1" not in url)
    expect(page.locator("orchestra-run")).to_contain_text("running")
    assert actor.steps < FEW


def test_the_help_says_how(visitor: Visitor) -> None:
    page = visitor.run("whole")
    visitor.press("?")
    asked = page.locator(".help-ask")
    expect(asked).to_have_text(
        [
            "Why did it fail?",
            "Who set this value?",
            "What changed between these two moments?",
            "What else was considered here?",
            "Can I try again from here with this changed?",
        ]
    )
    for each in page.locator(".help-questions li").all():
        assert each.locator("kbd").count() < FEW
    expect(page.locator(".help-keys")).to_contain_text("Next error")
    visitor.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_the_palette_by_keyboard(visitor: Visitor) -> None:
    page = visitor.run("broken", at=0)
    visitor.press("Control+k")
    expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    page.keyboard.type("next err")
    expect(page.locator(".palette-row")).to_have_count(1)
    visitor.press("Enter")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("orchestra-details .tone-bad-box").first).to_contain_text("it is broken")


def test_the_palette_moves_with_the_arrows(visitor: Visitor) -> None:
    page = visitor.run("tough", at=3)
    visitor.press("Control+k")
    visitor.press("ArrowDown", "ArrowDown", "ArrowUp")
    expect(page.locator(".palette-row[aria-selected=true]")).to_have_count(1)
    expect(page.locator(".palette-row").nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.type("no such command at all")
    expect(page.locator(".palette-none")).to_be_visible()
    visitor.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("orchestra-details h2")).to_have_text("Snapshot 3")


def test_the_family_is_drawn(actor: Visitor, own: Project) -> None:
    made = own.json("fork", "r1@1")["run"]
    page = actor.run("r1")
    page.get_by_role("button", name="Family").click()
    rows = page.locator("dialog[open] .family-list li")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("from snapshot 1")
    expect(page.locator("dialog[open] .family-line")).to_have_count(1)
    rows.nth(1).locator("a").click()
    page.wait_for_url(f"**/runs/{made}*")
