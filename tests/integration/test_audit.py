"""The audit over runs that are played: by commands, from Python and from the page."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra import CheckpointSettings, Orchestra
from orchestra.stores.audit.log import AuditFailed, AuditLog
from orchestra.stores.audit.store import AuditedStore
from orchestra.stores.registry import audit_file, open_store
from tests.unit.cli.project import Project
from tests.unit.cli.recording import FORK, REVIEW, record_into
from tests.web.support import served

STORE = "outputs/orchestra.db"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A folder with a workflow that asks a person."""
    made = Project(tmp_path)
    made.workflow("quick", "asks")
    yield made
    made.close()


def _lines(folder: Path, store: str = STORE) -> list[dict[str, Any]]:
    log = AuditLog(str(folder / f"{store}-audit.jsonl"))
    assert log.check().broken is None
    return [json.loads(line) for line in Path(log.file).read_bytes().splitlines()]


def test_every_command_that_plays_or_orders_leaves_few_lines(project: Project) -> None:
    story: list[tuple[tuple[str, ...], int]] = [
        (("run", "flow.yaml", "--run-id", "r1"), 3),
        (("snapshot", "r1", "now"), 0),
        (("pause", "r1"), 0),
        (("resume", "r1"), 3),
        (("rollback", "r1@2", "--yes"), 0),
        (("provide", "r1", "NOTHING"), 2),
        (("retry", "r1", "nothing"), 2),
        (("resume", "r1"), 3),
        (("answer", "r1", "yes", "--resume"), 0),
        (("fork", "r1@1"), 0),
        (("replay", "r1@1"), 3),
    ]
    for command, code in story:
        project.run(*command, code=code, ORCHESTRA_CHECKPOINT_AUDIT="true")
    project.run("cancel", project.only_run(), "--yes", ORCHESTRA_CHECKPOINT_AUDIT="true")
    lines = _lines(project.folder)
    done = {line["what"] for line in lines}
    assert done >= {command[0] for command, _ in story} - {"run"} | {"cancel"}
    for pid in {line["pid"] for line in lines}:
        assert len([line for line in lines if line["pid"] == pid]) <= 4


def test_playing_a_run_reads_nothing(project: Project) -> None:
    project.workflow("quick")
    project.run("run", "flow.yaml", ORCHESTRA_CHECKPOINT_AUDIT="true")
    assert _lines(project.folder) == []


def test_a_workflow_that_asks_for_it_has_its_store_audited(project: Project) -> None:
    flow = project.folder / "flow.yaml"
    flow.write_text(flow.read_text(encoding="utf-8") + "checkpoint: {audit: true}\n", encoding="utf-8")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    project.run("show", "r1")
    assert [line["what"] for line in _lines(project.folder)] == ["show"]


@pytest.mark.anyio
async def test_going_on_from_python_is_one_line(project: Project) -> None:
    url = f"sqlite:{project.folder}/store.db"
    settings = CheckpointSettings(audit=True)
    async with Orchestra(url, settings=settings, project=project.folder) as house:
        ending = await house.run(project.folder / "flow.yaml", run="r1")
        assert ending.kind == "waiting"
    before = len(_lines(project.folder, "store.db"))
    async with Orchestra(url, settings=settings, project=project.folder) as house:
        await house.resume("r1")
    [line] = _lines(project.folder, "store.db")[before:]
    assert line["what"].startswith("python")
    assert (line["act"], line["run"], line["content"]) == ("read", "r1", True)


@pytest.mark.anyio
async def test_the_page_says_which_question_it_was(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    with open_store(url, create=True) as store:
        await record_into(store)
    with open_store(url, read_only=True, audited=True) as store:
        async with served(store) as visitor:
            await visitor.get(f"/runs/{REVIEW}/snapshots/3/state")
            await visitor.get(f"/runs/{REVIEW}/snapshots/4/state")
            await visitor.get(f"/runs/{FORK}")
    found = {(line["what"], line["run"]): line for line in _lines(tmp_path, "store.db")}
    assert found["GET /api/runs/{run}/snapshots/{at}/state", REVIEW]["content"] is True
    assert ("GET /api/runs/{run}", FORK) in found


@pytest.mark.anyio
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it needs a full device")
async def test_the_page_answers_with_the_error_once_lines_cannot_be_written(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    with open_store(url, create=True) as store:
        await record_into(store)
    await anyio.Path(audit_file(url) or "").symlink_to("/dev/full")
    store = open_store(url, read_only=True, audited=True)
    async with served(store) as visitor:
        await visitor.get(f"/runs/{REVIEW}/snapshots/3/state")
        assert isinstance(store, AuditedStore)
        with anyio.fail_after(180), suppress(AuditFailed):
            while True:  # nobody asks: it is noted now, which fails
                store._ledger.retry()
                await anyio.sleep(0.02)
        status, said = await visitor.refused(f"/runs/{REVIEW}/snapshots/4/state")
        assert (status, said["error"]) == (503, "AuditFailed")
    with pytest.raises(AuditFailed):
        store.close()
