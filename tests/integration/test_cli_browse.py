"""`orchestra browse` as a process: it says where it is, serves, plays runs, and ends in order."""

import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.project import PATIENCE, Project, ended


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


class Browser:
    """A browser that was started, and somebody who asks it."""

    def __init__(self, project: Project, *arguments: str) -> None:
        self.process = project.start("browse", "--no-open", *arguments, PYTHONUNBUFFERED="1")
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r"(http://[^/]+)(/\S*)\?token=(\S+)\n", line)
        assert found is not None, (line, self.process.poll() and self.process.communicate())
        self.address, self.path, self.token = found.groups()

    def ask(self, path: str, body: Any = None) -> Any:
        """The JSON that is answered."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/api{path}", data, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.loads(response.read())

    def until(self, project: Project, run: str, **wanted: Any) -> None:
        """Wait until a run stands as wanted."""
        project.wait_until(lambda: wanted.items() <= self.ask(f"/runs/{run}").items(), self.process)


def test_runs_are_played_from_the_page_and_stay_resumable(project: Project) -> None:
    project.workflow("quick", "asks", "gate")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    browser = Browser(project, "r1")
    assert browser.path == "/runs/r1"
    assert browser.ask("/info")["read_only"] is False
    browser.ask("/runs/r1/answer", {"value": "yes", "play": True})
    browser.until(project, "r1", playing=True, phase="p3")
    stream = urllib.request.Request(
        f"{browser.address}/api/events", headers={"Authorization": f"Bearer {browser.token}"}
    )
    with urllib.request.urlopen(stream, timeout=PATIENCE) as open_stream:
        assert open_stream.readline() == b"retry: 1000\n"
        project.wait_for("began", browser.process)
        browser.process.send_signal(signal.SIGTERM)
        ended(browser.process, 0)
    assert project.status("r1") == "paused"
    assert project.json("runs")[0]["owned"] is False
    project.go()
    assert "✔ completed  r1" in project.run("resume", "r1").stdout


def test_a_failed_run_is_tried_again_in_its_own_folder(project: Project) -> None:
    project.workflow("breaks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=1)
    browser = Browser(project)
    (project.folder / "repaired").touch()
    browser.ask("/runs/r1/resume", {})
    browser.until(project, "r1", status="completed", playing=False)
    browser.process.send_signal(signal.SIGINT)
    ended(browser.process, 0)


def test_a_browser_that_only_reads(project: Project) -> None:
    project.workflow("quick")
    project.run("run", "flow.yaml", "--run-id", "r1")
    browser = Browser(project, "--read-only")
    assert browser.ask("/info")["actions"] is False
    with pytest.raises(urllib.error.HTTPError) as refused:
        browser.ask("/runs/r1/note", {"at": 0, "text": "x"})
    with refused.value:
        assert refused.value.code == 403
    browser.process.send_signal(signal.SIGHUP)
    ended(browser.process, 0)


def test_a_files_store_is_opened_once(project: Project) -> None:
    project.workflow("quick", "asks")
    project.run("run", "flow.yaml", "--run-id", "r1", "--store", "files:outputs/files", code=3)
    browser = Browser(project, "--store", "files:outputs/files")
    browser.ask("/runs/r1/answer", {"value": "yes", "play": True})
    browser.until(project, "r1", status="completed", playing=False)
    browser.process.send_signal(signal.SIGTERM)
    ended(browser.process, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--host", "0.0.0.0"), "for this machine only"),
        (("--port", "99999"), "cannot be listened on"),
        (("nobody",), "There is no run 'nobody'"),
        (("--store", "sqlite:nowhere.db"), "There is no store at nowhere.db"),
    ],
)
def test_what_cannot_be_browsed_is_said(project: Project, arguments: tuple[str, ...], said: str) -> None:
    project.workflow("quick")
    project.run("run", "flow.yaml", "--run-id", "r1")
    done: subprocess.CompletedProcess[str] = project.run("browse", "--no-open", *arguments, code=2)
    assert said in done.stderr.replace("\n", " ")
