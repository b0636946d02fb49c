"""`orchestra stats` and `orchestra doctor`."""

import errno
import io
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.app import checkup
from orchestra.app.checkup import CheckupFinding
from orchestra.app.orchestra import Orchestra
from orchestra.cli.commands.doctor import print_findings
from orchestra.cli.dispatch import run_command_line
from orchestra.cli.render.screen import Screen
from orchestra.engine.orders import Order
from orchestra.ids import AgentId, PhaseId, RunId
from orchestra.model.workflow import Agent, Phase, Policy, Retry, Specialist, Workflow
from tests.unit.telemetry.support import FUNCTIONS, crash, stored, workflow

Call = Callable[..., tuple[int, str]]


async def _record(folder: Path) -> None:
    """Two runs that complete and one, of another workflow, that fails."""
    agent, only = AgentId("flaky"), Specialist(id="s", agent=AgentId("flaky"), task="t")
    hopeless = Workflow(
        name="hopeless",
        agents=(Agent(id=agent, kind="function"),),
        phases=(Phase(id=PhaseId("p"), specialists=(only,)),),
        policy=Policy(retry=Retry(attempts=1)),
    )
    async with Orchestra(
        f"sqlite:{folder}/store.db", functions=FUNCTIONS, project=folder, telemetry=True, events=True
    ) as house:
        for name in ("letters_1", "letters_2"):
            await house.run(workflow(), run=name)
        await house.run(hopeless, run="hopeless_1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    anyio.run(_record, tmp_path)
    for name in ("ORCHESTRA_ADDRESS_KEY", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCHESTRA_STORE", "sqlite:store.db")
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def called(*arguments: str) -> tuple[int, str]:
        code = run_command_line(arguments)
        return code, capsys.readouterr().out

    return called


def _checks(out: str) -> dict[str, dict[str, Any]]:
    return {each["check"]: each for each in json.loads(out)["checks"]}


def test_what_runs_spent_is_listed_when_it_is_asked_for(folder: Path, call: Call) -> None:
    _, out = call("runs", "--spent", "--json")
    spent = {each["run"]: each["spent"] for each in json.loads(out)}
    assert spent["letters_1"] == {"api_calls": 1, "tokens_in": 30, "tokens_out": 12, "cost_micros": 0}
    assert spent["hopeless_1"]["tokens_in"] == 0
    total = json.loads(call("stats", "--json")[1])["total"]
    assert all(sum(each[name] for each in spent.values()) == total[name] for name in spent["letters_1"])
    head, _, letters, _ = call("runs", "--spent")[1].splitlines()[:4]
    assert " ".join(head.split()).startswith("status run workflow calls tokens in out")
    assert letters.split()[4:7] == ["1", "30", "12"]
    assert "spent" not in json.loads(call("runs", "--json")[1])[0]


def test_stats_as_json(folder: Path, call: Call) -> None:
    code, out = call("stats", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["total"]["statuses"] == {"completed": 2, "failed": 1}
    assert told["total"]["success_rate"] == pytest.approx(2 / 3)
    assert (told["total"]["tokens_in"], told["total"]["tokens_out"]) == (60, 24)
    by_name = {each["workflow"]: each for each in told["workflows"]}
    assert by_name["letters"]["duration"]["count"] == 2
    assert by_name["hopeless"]["duration"] is None
    snapshots = sum(len(stored(folder, name)) for name in ("letters_1", "letters_2", "hopeless_1"))
    assert told["snapshots"] == told["snapshot_size"]["count"] == told["write_duration"]["count"] == snapshots
    assert told["file_bytes"] > 0
    assert sum(each["bytes"] for each in told["added"]) > 0
    (writer,) = told["calibration"]
    assert (writer["workflow"], writer["agent"], writer["model"]) == ("letters", "writer", "")
    assert (writer["total"]["accept"], writer["total"]["stated"], writer["total"]["enough"]) == (
        2,
        0.9,
        False,
    )
    (band,) = writer["bands"]
    assert (band["least"], band["below"], band["results"]) == (0.9, None, 2)


def test_stats_of_one_workflow(folder: Path, call: Call) -> None:
    _, out = call("stats", "--json", "--workflow", "hopeless")
    told = json.loads(out)
    assert told["total"]["statuses"] == {"failed": 1}
    assert told["snapshots"] == len(stored(folder, "hopeless_1"))
    assert [each["workflow"] for each in told["workflows"]] == ["hopeless"]


def test_stats_for_people(folder: Path, call: Call) -> None:
    code, out = call("stats")
    assert code == 0
    assert "3 runs" in out
    assert "67% of those that ended completed" in out
    assert "p95" in out
    assert "too few: fewer than 20 results say little" in out
    (folder / "outputs").rename(folder / "elsewhere")
    assert "no telemetry files" in call("stats")[1]


def test_stats_of_nothing(folder: Path, call: Call) -> None:
    code, out = call("stats", "--workflow", "nobody")
    assert code == 0
    assert "0 runs" in out


def test_stats_of_runs_that_were_cancelled(tmp_path: Path, call: Call) -> None:
    """They have ended, and count neither as completed nor as failed."""
    anyio.run(_cancel, tmp_path)
    out = call("stats", "--store", f"sqlite:{tmp_path}/store.db")[1]
    assert "1 cancelled" in out
    assert "success   none has completed or failed yet\n" in out
    heads = _checks(call("doctor", "--json", "--store", f"sqlite:{tmp_path}/store.db")[1])["heads"]
    assert heads["said"] == "the newest snapshot of 1 run is whole"


async def _cancel(folder: Path) -> None:
    async with Orchestra(f"sqlite:{folder}/store.db", functions=FUNCTIONS, project=folder) as house:
        await house.run(workflow(), run="letters_1", break_at=["print"])
        await house.order("letters_1", Order(kind="cancel"))


def test_the_doctor_breaks_lines_between_words() -> None:
    found = CheckupFinding("packages", "warn", "one two three four five", "install the packages again")
    out = io.StringIO()
    print_findings(Screen(out, tty=True, colour=False, columns=24), [found])
    assert out.getvalue().splitlines()[:5] == [
        "○ packages  one two",
        "            three four",
        "            five",
        "            → install",
        "              the",
    ]


def test_a_healthy_doctor(folder: Path, call: Call) -> None:
    code, out = call("doctor", "--json")
    checks = _checks(out)
    assert [each for each in checks.values() if each["health"] == "fail"] == []
    assert code == 0
    assert {"python", "sqlite", "disk", "store", "store writable", "heads", "telemetry"} <= set(checks)
    assert "✔ store" in call("doctor")[1]


def test_the_doctor_finds_damage(folder: Path, call: Call) -> None:
    connection = sqlite3.connect("store.db")
    with connection:
        for no, header in connection.execute("select no, header from rows").fetchall():
            flipped = header[:-1] + bytes([header[-1] ^ 1])
            connection.execute("update rows set header = ? where no = ?", (flipped, no))
    connection.close()
    code, out = call("doctor", "--json")
    assert code == 1
    assert _checks(out)["heads"]["health"] == "fail"
    assert "orchestra verify" in call("doctor")[1]


def test_the_doctor_finds_runs_that_stopped(folder: Path, call: Call) -> None:
    crash(folder, "crashing_1")
    code, out = call("doctor", "--json")
    assert code == 0, "a warning is no failure"
    found = _checks(out)["stuck runs"]
    assert (found["health"], found["advice"]) == ("warn", "`orchestra resume --all`")
    assert "crashing_1" in found["said"]
    assert json.loads(call("stats", "--json")[1])["total"]["statuses"]["interrupted"] == 1


async def _leave(folder: Path) -> None:
    """Runs that were left: they wait, were answered, paused, forked, and stopped in order."""
    asking = Workflow(
        name="asking",
        agents=(Agent(id=AgentId("asks"), kind="function"),),
        phases=(Phase(id=PhaseId("p"), specialists=(Specialist(id="s", agent=AgentId("asks"), task="t"),)),),
    )

    async def asks(ctx: Any) -> object:
        return await ctx.ask("Go on?")

    async with Orchestra(f"sqlite:{folder}/store.db", functions={"asks": asks}, project=folder) as house:
        for name in ("waiting_1", "answered_1", "paused_1"):
            await house.run(asking, run=name)
        (wait,) = (await house.manager.look(RunId("answered_1"), None)).state.waits
        await house.order(RunId("answered_1"), Order(kind="answer", target=wait, value="yes"))
        await house.order(RunId("paused_1"), Order(kind="pause", reason="not now"))
        await house.fork("waiting_1", 0, new="forked_1")


def test_the_doctor_tells_apart_why_runs_stand_still(folder: Path, call: Call) -> None:
    anyio.run(_leave, folder)
    crash(folder, "crashing_1")
    checks = _checks(call("doctor", "--json")[1])
    told = {
        "stuck runs": ({"answered_1", "crashing_1"}, "`orchestra resume --all`"),
        "waiting runs": ({"waiting_1"}, "`orchestra questions`"),
        "paused runs": ({"paused_1", "forked_1"}, "`orchestra resume RUN`"),
    }
    for check, (runs, advice) in told.items():
        assert set(checks[check]["said"].partition(": ")[2].split(", ")) == runs
        assert checks[check]["advice"] == advice


def test_the_doctor_tries_to_write(folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path("store.db").read_bytes()
    assert _checks(call("doctor", "--json")[1])["store writable"]["health"] == "ok"
    assert Path("store.db").read_bytes() == before
    monkeypatch.setenv("ORCHESTRA_STORE", "sqlite:store.db?mode=ro")
    code, out = call("doctor", "--json")
    found = _checks(out)["store writable"]
    assert (code, found["health"]) == (1, "fail")
    assert found["advice"] == "change its permissions, or name another store"


def test_the_doctor_without_a_store(folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORCHESTRA_STORE")
    code, out = call("doctor", "--json")
    assert code == 0
    assert _checks(out)["store"]["health"] == "warn"


@pytest.mark.parametrize(
    ("name", "value", "check", "health"),
    [
        ("ORCHESTRA_ADDRESS_KEY", "short", "address key", "fail"),
        ("ORCHESTRA_ADDRESS_KEY", "ab" * 32, "address key", "fail"),
        ("ORCHESTRA_CHECKPOINT_EVERY", "often", "settings", "fail"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9", "telemetry", "warn"),
        ("ORCHESTRA_STORE", "sqlite:letters.txt", "store", "fail"),
    ],
)
def test_the_doctor_names_what_is_wrong(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch, name: str, value: str, check: str, health: str
) -> None:
    (folder / "letters.txt").write_text("not a store " * 1000)
    monkeypatch.setenv(name, value)
    code, out = call("doctor", "--json")
    found = [each for each in json.loads(out)["checks"] if each["check"] == check]
    assert health in [each["health"] for each in found]
    assert code == (1 if health == "fail" else 0)


def test_filesystems_that_are_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for kind, health in (("nfs4", "warn"), ("tmpfs", "warn"), ("ext4", "ok")):
        monkeypatch.setattr(checkup, "filesystem_of", lambda folder, kind=kind: kind)
        assert checkup._filesystem(tmp_path).health == health


@pytest.mark.parametrize(
    ("number", "advice"), [(errno.ENOSPC, "give space back"), (errno.EACCES, "let this user write")]
)
def test_what_to_do_about_a_folder_that_cannot_be_written(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    code, said = call("doctor", "--json")
    (found,) = [each for each in json.loads(said)["checks"] if each["check"] == "outputs"]
    assert (code, found["health"]) == (1, "fail")
    assert advice in found["advice"]
