"""`orchestra run` and `resume` as processes: what they print, how they end, what they leave."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.project import Project, ended


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


def test_a_run_that_completes(project: Project) -> None:
    project.workflow("quick")
    done = project.run("run", "flow.yaml", "--run-id", "r1", "--input", "topic=cats")
    for sentence in (
        "started tiny",
        "phase p1 begins",
        "quick begins",
        "quick decided: Write it down, because notes last longer than memory",
        "quick wrote p1/note.md (6 B)",
        "quick finished",
        "phase p1 is done",
        "completed",
    ):
        assert any(line.endswith(sentence) for line in done.stdout.splitlines()), (sentence, done.stdout)
    assert "✔ completed  r1" in done.stdout
    assert "next       orchestra log r1" in done.stdout
    assert (project.folder / "outputs/r1/p1/note.md").read_text() == "# cats"
    assert done.stderr == ""
    assert project.status("r1") == "completed"


def test_lines_of_json(project: Project) -> None:
    project.workflow("quick")
    done = project.run("run", "flow.yaml", "--run-id", "r1", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["kind"] == "run_started"
    decided = next(line for line in lines if line["kind"] == "decision_made")
    assert decided["details"]["rationale"] == "notes last longer than memory"
    assert {"run", "seq", "at", "kind", "who", "what", "figures", "status", "phase", "details"} == set(
        decided
    )
    assert [line["kind"] for line in lines].count("ending") == 1
    assert lines[-1]["ending"] == "completed"
    assert lines[-1]["outputs"][0]["file"] == "outputs/r1/p1/note.md"
    assert [line["seq"] for line in lines[:-1]] == sorted(line["seq"] for line in lines[:-1])


@pytest.mark.parametrize("option", ["--json", "--quiet"])
def test_what_agents_print_does_not_mix_with_what_is_read(project: Project, option: str) -> None:
    project.workflow("loud")
    done = project.run("run", "flow.yaml", "--run-id", "r1", option)
    if option == "--json":
        assert [json.loads(line) for line in done.stdout.splitlines()][-1]["ending"] == "completed"
    else:
        assert done.stdout == "completed r1\n"
    for said in ("printed by the agent", "written by the agent", "printed by its program"):
        assert said in done.stderr.splitlines()


def test_quiet(project: Project) -> None:
    project.workflow("quick")
    done = project.run("run", "flow.yaml", "--run-id", "r1", "--quiet")
    assert done.stdout == "completed r1\noutputs/r1/p1/note.md\n"


def test_several_at_once(project: Project) -> None:
    project.workflow("quick", name="one", file="one.yaml")
    project.workflow("breaks", name="two", file="two.yaml")
    done = project.run("run", "one.yaml", "two.yaml", code=1)
    assert {row["status"] for row in project.json("runs")} == {"completed", "failed"}
    assert "✔ completed  one_" in done.stdout
    assert "✖ failed  two_" in done.stdout


def test_a_run_that_fails_quietly_still_says_why(project: Project) -> None:
    project.workflow("breaks")
    done = project.run("run", "flow.yaml", "--run-id", "r1", "--quiet", code=1)
    assert done.stdout == "failed r1\n"
    assert done.stderr == "r1 failed: RuntimeError: it is broken\n"


def test_a_run_that_fails_is_repaired_and_resumed(project: Project) -> None:
    project.workflow("quick", "breaks")
    done = project.run("run", "flow.yaml", "--run-id", "r1", code=1)
    assert "breaks failed: RuntimeError: it is broken" in done.stdout
    assert "next       orchestra resume r1" in done.stdout
    (project.folder / "repaired").touch()
    again = project.run("resume", "r1")
    assert "✔ completed  r1" in again.stdout
    assert "phase p1 begins" not in again.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "gone.yaml"), "gone.yaml"),
        (("run", "bad.yaml"), "bad.yaml:2:1: "),
        (("run", "flow.yaml", "--input", "topic"), "write NAME=VALUE"),
        (("run", "flow.yaml", "--input", "tpoic=x"), "did you mean `topic`"),
        (("run", "flow.yaml", "--break-at", "p9"), "the phases of tiny are p1"),
        (("run", "flow.yaml", "flow.yaml", "--run-id", "x"), "there are several files"),
        (("run", "flow.yaml", "--run-id", "not/a/name"), "cannot be used as run id"),
        (("run",), "orchestra run --help"),
        (("resume",), "write --all"),
        (("resume", "nobody"), "There is no"),
    ],
)
def test_what_cannot_be_asked_for(project: Project, arguments: tuple[str, ...], said: str) -> None:
    project.workflow("quick")
    (project.folder / "bad.yaml").write_text("name: bad\nfases: {}\n")
    done = project.run(*arguments, code=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_a_run_id_is_used_once(project: Project) -> None:
    project.workflow("quick")
    project.run("run", "flow.yaml", "--run-id", "r1")
    assert "is there already" in project.run("run", "flow.yaml", "--run-id", "r1", code=2).stderr


def test_a_question_is_answered_later(project: Project) -> None:
    project.workflow("asks")
    done = project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    assert "asks asks: Publish? [yes, no]" in done.stdout
    assert "next       orchestra answer r1 yes --resume" in done.stdout
    assert [each["text"] for each in project.json("questions")] == ["Publish?"]
    wrong = project.run("answer", "r1", "maybe", code=2)
    assert "the choices are yes, no" in wrong.stderr
    assert "the choices are yes, no" in project.run("answer", "r1", code=2).stderr
    answered = project.run("answer", "r1", "yes")
    assert "orchestra resume r1" in answered.stdout
    assert project.json("questions") == []
    assert project.status("r1") == "paused"
    assert "✔ completed  r1" in project.run("resume", "r1").stdout
    assert project.json("status", "r1")["metrics"]["recoveries"] == 0


def test_answering_and_going_on_in_one_go(project: Project) -> None:
    project.workflow("asks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    assert "✔ completed  r1" in project.run("answer", "r1", "no", "--resume").stdout
    assert "no open question" in project.run("answer", "r1", "no", code=2).stderr


def test_something_that_is_needed_is_provided(project: Project) -> None:
    project.workflow("needs")
    done = project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    assert "needs needs: A_KEY_FOR_TESTS" in done.stdout
    assert "orchestra provide r1 A_KEY_FOR_TESTS --resume" in done.stdout
    refused = project.run("provide", "r1", "ANOTHER", code=2)
    assert "does not wait for 'ANOTHER'" in refused.stderr
    done = project.run("provide", "r1", "A_KEY_FOR_TESTS", "--resume", A_KEY_FOR_TESTS="a-secret-value")
    assert "✔ completed  r1" in done.stdout
    assert "a-secret-value" not in done.stdout


def test_a_breakpoint_on_the_command_line(project: Project) -> None:
    project.workflow("quick", "quick", "quick")
    both = ("--break-at", "p2", "--break-at", "p3")
    done = project.run("run", "flow.yaml", "--run-id", "r1", *both, code=3)
    assert "stops at a breakpoint: before phase p2" in done.stdout
    assert "next       orchestra resume r1" in done.stdout
    again = project.run("resume", "r1", code=3)
    assert "stops at a breakpoint: before phase p3" in again.stdout, "another process stops there too"
    assert "✔ completed  r1" in project.run("resume", "r1").stdout
    first = project.run("run", "flow.yaml", "--run-id", "r2", "--break-at", "p1", code=3)
    assert "quick begins" not in first.stdout


def test_a_changed_workflow_is_shown_then_accepted(project: Project) -> None:
    path = project.workflow("quick", "asks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    path.write_text(path.read_text().replace("Do asks", "Ask it"))
    refused = project.run("resume", "r1", code=2)
    assert "has changed since it was started" in refused.stderr
    lines = [line for line in refused.stderr.splitlines() if line.startswith("  ~ ")]
    assert len(lines) == 1
    assert "'Do asks' and is 'Ask it'" in lines[0]
    project.run("answer", "r1", "yes")
    assert (
        "goes on with a changed workflow" in project.run("resume", "r1", "--accept-changes", code=None).stdout
    )


def test_another_workflow_file(project: Project) -> None:
    project.workflow("quick", "asks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    other = project.workflow("quick", "asks", "quick", file="other.yaml")
    assert "p3 is new" in project.run("resume", "r1", "--workflow", other.name, code=2).stderr
    project.run("answer", "r1", "yes")
    done = project.run("resume", "r1", "--workflow", other.name, "--accept-changes")
    assert "phase p3 begins" in done.stdout


def test_answering_a_run_that_another_process_plays(project: Project) -> None:
    project.workflow("asks")
    process = project.start("run", "flow.yaml", "--run-id", "r1", "--wait")
    project.wait_until(lambda: (project.folder / "outputs/orchestra.db").exists(), process)
    project.wait_until(lambda: _asked(project), process)
    assert "the choices are yes, no" in project.run("answer", "r1", "perhaps", code=2).stderr
    assert "owned" in project.json("answer", "r1", "yes")
    out, _ = ended(process, 0)
    assert "✔ completed  r1" in out


def _asked(project: Project) -> bool:
    done = project.run("questions", "--json", code=None)
    return done.returncode == 0 and bool(json.loads(done.stdout))
