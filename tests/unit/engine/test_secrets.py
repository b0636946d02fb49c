"""Secrets never reach the store, events or outputs (FAULTS 45, CHECKLIST 001.46)."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.engine.orders import Order
from orchestra.engine.redact import REDACTED, Redactor
from orchestra.errors import BadInput, BadName
from orchestra.ids import AgentId, Instant, RunId
from orchestra.limits import STREAM_HELD_CHARS
from orchestra.model.events import Forked, RolledBack, RunPaused
from orchestra.model.workflow import Criterion, Evaluate, Input
from orchestra.ports.agent import Judgement
from orchestra.stores.sqlite import SqliteStore
from tests.unit.engine.support import Theatre, does, flow, nothing, phase, policy, result

CANARY = "canary-5up3r-5ecret"
SHAPED = "sk-" + "Zq7" * 10
MARKED = "marked-as-5ecret"


async def _leaky(ctx: Any) -> Any:
    """Says the secrets wherever something can be said."""
    both = f"{CANARY} {SHAPED} {MARKED}"
    await ctx.save({both: [both, (both,), both.encode()]}, step=both, blockers=[{"by": both, "reason": both}])
    ctx.emit(both)
    await ctx.decide(both, rationale=both, alternatives=[both], details={"it": both})
    await ctx.effect("call", lambda key: both, intent=both)
    await ctx.write("report.md", both)
    await ctx.write("raw.bin", b"\xff\x00" + both.encode())
    if ctx.attempt == 1:
        ctx.fail(both, details={"it": both})
    return {"said": both}


async def _judge(ctx: Any) -> Judgement:
    both = f"{CANARY} {SHAPED} {MARKED}"
    issues = [{"description": both, "where": both}]
    await ctx.score("depth", 1.0, rationale=both, feedback=both, issues=issues)
    return Judgement(feedback=both, issues=tuple(issues))


@pytest.mark.anyio
async def test_canaries_are_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", CANARY)
    evaluate = Evaluate(agent=AgentId("judge"), rubric=(Criterion(name="depth"),))
    workflow = flow(
        phase("work", does("leaky", task="use {{ inputs.free }}"), evaluate=evaluate),
        inputs=[Input(name="free"), Input(name="hidden", secret=True), Input(name="short", secret=True)],
        policy=policy("restart", "fail", attempts=2),
    )
    inputs = {"free": f"{CANARY} {SHAPED}", "hidden": MARKED, "short": "pin42"}
    with SqliteStore(tmp_path / "store.db", create=True) as store:
        theatre = Theatre(tmp_path, store)
        plain = CheckpointSettings(compression=False)  # so that every byte can be looked through
        ending = await theatre.run(workflow, {"leaky": _leaky, "judge": _judge}, inputs, settings=plain)
        assert ending.kind == "completed", ending.state.failure
        assert result(ending.state, "work/leaky") == {"said": f"{REDACTED} {REDACTED} {REDACTED}"}
        hits = [str(event) for event in theatre.events if any(each in str(event) for each in _ALL)]
        assert hits == []
    _check_files(tmp_path)


def _check_files(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "report.md" for path in files)
    assert any(REDACTED.encode() in path.read_bytes() for path in files if ".db" in path.name)
    assert not [path for path in files if any(each.encode() in path.read_bytes() for each in _ALL)]


_ALL = (CANARY, SHAPED, MARKED, "pin42")


async def _sly(ctx: Any) -> Any:
    """Says secrets where nobody expects them: in names, kinds and escaped."""
    number, quoted = ctx.inputs["number"], ctx.inputs["quoted"]
    await ctx.decide("a choice", kind=CANARY)
    await ctx.write("data.json", json.dumps({"it": quoted}), CANARY)
    for name, say in (
        ("effect", ctx.effect(f"call-{CANARY}", lambda key: 1)),
        ("output", ctx.write(CANARY, "x")),
    ):
        with pytest.raises(BadName, match=f"cannot be used as {name}"):
            await say
    if ctx.attempt == 1:
        raise type(f"Odd{CANARY}", (Exception,), {})("odd")
    return {"n": number, "text": str(number), "quoted": [json.dumps(quoted), repr(quoted)], **ctx.inputs}


@pytest.mark.anyio
async def test_names_and_forms_of_secrets_are_nowhere_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", CANARY)
    inputs = [
        Input(name="number", type="integer", secret=True),
        Input(name="quoted", secret=True),
        Input(name="many", type="list", secret=True),
        Input(name="map", type="map", secret=True),
    ]
    given = {
        "number": 123456789,
        "quoted": 'quo"ted\n\\5ecret',
        "many": ["alpha-5ecret", 87654321],
        "map": {"key": "gamma-5ecret"},
    }
    workflow = flow(phase("work", does("sly")), inputs=inputs, policy=policy("restart", "fail", attempts=2))
    with SqliteStore(tmp_path / "store.db", create=True) as store:
        theatre = Theatre(tmp_path, store)
        plain = CheckpointSettings(compression=False)
        ending = await theatre.run(workflow, {"sly": _sly}, given, settings=plain)
    assert ending.kind == "completed", ending.state.failure
    found = result(ending.state, "work/sly")
    assert (found["n"], found["text"], found["map"]) == (REDACTED, REDACTED, {"key": REDACTED})
    said = (CANARY, "123456789", 'quo"ted', 'quo\\"ted', "alpha-5ecret", "87654321", "gamma-5ecret")
    _check_nowhere(tmp_path, said)
    assert not [str(event) for event in theatre.events if any(each in str(event) for each in said)]


def _check_nowhere(folder: Path, said: tuple[str, ...]) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if any(each.encode() in path.read_bytes() for each in said)]
    assert not [path for path in files if any(each in str(path) for each in said)]


class Asking:
    """Notes what it is handed, and asks once."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    async def __call__(self, ctx: Any) -> None:
        self.seen.append(dict(ctx.inputs))
        if len(self.seen) == 1:
            raise ValueError("once more")


SECRETS = [
    Input(name="pw", secret=True, default=freeze("default-password", Addresser()), required=False),
    Input(name="pin", type="integer", secret=True),
    Input(name="many", type="list", secret=True),
    Input(name="opt", secret=True, required=False),
    Input(name="plain", required=False),
]


@pytest.mark.anyio
@pytest.mark.parametrize("pw", ["real-password", None])
async def test_secrets_are_handed_out_again_as_they_were(theatre: Theatre, pw: str | None) -> None:
    """Of their types; a default needs not be given again, and what was never given neither."""
    given: dict[str, Any] = {"pin": "123456789", "many": '["alpha-secret"]'} | ({"pw": pw} if pw else {})
    agent = Asking()
    work = flow(phase("work", does("a", "agent")), inputs=SECRETS, policy=policy("fail"))
    assert (await theatre.run(work, {"agent": agent}, given)).kind == "failed"
    async with theatre.house({"agent": agent}) as house:
        with pytest.raises(BadInput, match="ORCHESTRA_INPUT_PIN is not set"):
            await house.resume("run", inputs={"many": "[]"} | ({"pw": pw} if pw else {}))
        for name in ("plain", "opt", "nonsense"):
            with pytest.raises(BadInput, match="only secret inputs are given again"):
                await house.resume("run", inputs={**given, name: "x"})
        assert (await house.resume("run", inputs=given)).kind == "completed"
    assert agent.seen[0] == agent.seen[1]
    assert agent.seen[0]["pw"] == (pw or "default-password")
    assert agent.seen[0]["pin"] == 123456789


@pytest.mark.anyio
@pytest.mark.parametrize("played", ["by nobody", "elsewhere"])
async def test_orders_are_compared_with_what_is_known_of_a_run_that_is_played_elsewhere_or_by_nobody(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch, played: str
) -> None:
    """What lies in the store for another process has no secrets in it either."""
    (theatre.folder / "keys").write_text("LICENCE=of-the-key-file\n")
    secret = ("set-in-the-environment", "left-at-its-default", "of-the-key-file")
    default = freeze(secret[1], Addresser())
    inputs = [Input(name="word", secret=True), Input(name="other", secret=True, default=default)]
    workflow = flow(phase("work", does("asks")), inputs=inputs)

    async def asks(ctx: Any) -> Any:
        return await ctx.ask("Which?")

    await theatre.run(workflow, {"asks": asks}, {"word": secret[0]})
    monkeypatch.setenv("ORCHESTRA_INPUT_WORD", secret[0])
    monkeypatch.setenv("ORCHESTRA_KEYS", str(theatre.folder / "keys"))
    sent = list[bytes]()
    async with theatre.house() as house:
        if played == "elsewhere":
            claim = theatre.store.claim(RunId("run"), "another")
            send = theatre.store.send

            def kept(run: RunId, body: bytes, at: Instant) -> int:
                sent.append(body)
                theatre.store.release(claim)  # it dies before it takes the order in
                return send(run, body, at)

            monkeypatch.setattr(theatre.store, "send", kept)
        await house.order("run", Order(kind="answer", value=" ".join(secret)))
        await house.order("run", Order(kind="rollback", target="0", reason=" ".join(secret)))
        await house.fork("run", 0, reason=" ".join(secret))
    told = [str(theatre.events), *(body.decode() for body in sent)]
    assert len(sent) == (played == "elsewhere")
    assert all(" ".join([REDACTED] * 3) in each for each in told)
    assert not [each for each in told if any(word in each for word in secret)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "secret", [CANARY, SHAPED, "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"]
)
async def test_a_secret_that_comes_in_pieces_is_found(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    """Streamed letter by letter, with a snapshot after each of them."""
    monkeypatch.setenv("SOME_API_KEY", CANARY)

    async def streams(ctx: Any) -> None:
        for letter in f"before {secret} after":
            ctx.emit(letter)
            await ctx.save()
        ctx.fail("stop here", recoverable=False)

    ending = await theatre.run(
        flow(phase("work", does("a", "streams")), policy=policy("fail")), {"streams": streams}
    )
    assert ending.state.agents["a"].partial == f"before {REDACTED} after"
    told = "".join(event.text for event in theatre.events if event.kind == "text_emitted")
    assert told == f"before {REDACTED} after"


KEY = "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----"
LINES = "\n".join("MIIEpAIBAAKCAQEA7bq0Zq9f" + str(number).zfill(8) for number in range(2000))


@pytest.mark.parametrize("size", [1, 7, 64, 5000, 100_000])
@pytest.mark.parametrize(
    "secret", [KEY.format(LINES), "sk-" + "Zq7" * 9000, KEY.format(LINES[:4096])], ids=["key", "sk", "4096"]
)
def test_a_long_secret_that_comes_in_pieces_leaves_nothing(secret: str, size: int) -> None:
    """However long it is and wherever it is cut; what follows is said, and little is held meanwhile."""
    redactor, said, held = Redactor(), "", ""
    text = f"before {secret} after. -----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----. "
    for at in range(0, len(text), size):
        now, held = redactor.split(held + text[at : at + size])
        said += redactor.text(now)
        assert len(held) <= max(STREAM_HELD_CHARS, size)
    assert said + redactor.text(held) == text.replace(secret, REDACTED)
    assert held == ""


def test_a_private_key_that_never_ends_takes_the_rest_along() -> None:
    redactor, said, held = Redactor(), "", ""
    for piece in ("before ", "-----BEGIN PRIV", "ATE KEY-----\n", LINES, LINES):
        now, held = redactor.split(held + piece)
        said += redactor.text(now)
    assert (said, redactor.text(held)) == ("before ", REDACTED)


def test_a_known_secret_may_be_longer_than_what_is_held_of_others() -> None:
    secret = "".join(f"word{number} " for number in range(5000))
    redactor, said, held = Redactor([secret]), "", ""
    text = f"before {secret} after. "
    for at in range(0, len(text), 997):
        now, held = redactor.split(held + text[at : at + 997])
        said += redactor.text(now)
    assert said + redactor.text(held) == text.replace(secret, REDACTED)


@pytest.mark.anyio
async def test_a_long_private_key_is_not_streamed_into_a_state(theatre: Theatre) -> None:
    async def streams(ctx: Any) -> None:
        text = f"before {KEY.format(LINES)} after"
        for at in range(0, len(text), 1000):
            ctx.emit(text[at : at + 1000])
            await ctx.save()
        ctx.fail("stop here", recoverable=False)

    ending = await theatre.run(
        flow(phase("work", does("a", "streams")), policy=policy("fail")), {"streams": streams}
    )
    assert ending.state.agents["a"].partial == f"before {REDACTED} after"
    assert not any("MIIE" in str(event) for event in theatre.events)


@pytest.mark.parametrize(
    "text", ["plain", "ends with s", "http://host", "a - b", "gist", "key: x", "", "5 x"]
)
def test_nothing_of_a_stream_is_lost(text: str) -> None:
    said, kept = Redactor([CANARY]).split(text)
    assert said + kept == text
    assert Redactor([CANARY]).split(f"{text}. ") == (f"{text}. ", "") or "://" in text


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdefghijklmnopqrstuvwx",
        "AKIAABCDEFGHIJKLMNOP",
        "ghp_" + "a" * 36,
        "xoxb-1234567890-abc",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_texts_that_look_like_keys_are_taken_out(text: str) -> None:
    assert Redactor().text(f"a {text} b") == f"a {REDACTED} b"


def test_a_password_in_an_address_is_taken_out() -> None:
    assert Redactor().text("https://me:hush@host/x") == f"https://{REDACTED}@host/x"


def test_a_stream_of_addresses_without_a_space_takes_linear_time() -> None:
    """Following each address to the end of the text would take hours."""
    assert Redactor().split("://" * 60_000 + " x") == ("://" * 60_000 + " ", "x")


@pytest.mark.anyio
async def test_what_people_say_of_a_run_that_nobody_plays_is_stored_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_TOKEN", CANARY)
    theatre = Theatre(tmp_path)
    await theatre.run(flow(phase("work", does("a"), breakpoint=True)), {"a": nothing})
    async with theatre.house() as house:
        await house.fork("run", 0, reason=f"since {CANARY}")
        await house.order("run", Order(kind="rollback", target="0", reason=f"since {CANARY}"))
        await house.order("run", Order(kind="pause", reason=f"since {CANARY}"))
    said = [event.reason for event in theatre.events if isinstance(event, Forked | RolledBack | RunPaused)]
    assert said.count(f"since {REDACTED}") == 3
    assert CANARY not in repr(theatre.events)


@pytest.mark.parametrize(
    "text", ["", "sk-short", "plain words", "skating", "https://host/path", "key: value"]
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor(["hush-hush"]).text(text) == text


def test_only_variables_that_sound_secret_are_known() -> None:
    redactor = Redactor.of_environment(
        {"MY_TOKEN": "abcdef123", "HOME": "my-own-place", "KEYBOARD": "qwertz9"}
    )
    assert redactor.text("abcdef123 my-own-place qwertz9") == f"{REDACTED} my-own-place qwertz9"
