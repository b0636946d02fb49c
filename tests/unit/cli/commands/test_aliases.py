"""The commands under the names of the source documents."""

import pytest

from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import AUDIT, FORK, REVIEW


def test_list_checkpoints(cli: Cli) -> None:
    assert cli("list-checkpoints", f"--task={REVIEW}").out == cli("snapshots", REVIEW).out
    assert cli("list-checkpoints", "--task=audit", "--json").json == cli("snapshots", AUDIT, "--json").json
    assert AUDIT in cli("list-checkpoints").lines[0]
    assert FORK in cli("list-checkpoints", "--task=review").lines[0]
    assert cli("list-checkpoints", "--task=nobody").code == 2


def test_diff_checkpoints(cli: Cli) -> None:
    found = cli("diff-checkpoints", "--from=phase1", "--to=phase2", f"--task={REVIEW}", "--json").json
    assert found["from"]["reference"] == f"{REVIEW}@7"
    assert found["to"]["reference"] == f"{REVIEW}@10"
    plain = cli("diff-checkpoints", f"--from={REVIEW}@3", f"--to={REVIEW}@4")
    assert plain.out == cli("diff", f"{REVIEW}@3", f"{REVIEW}@4").out


def test_phases_of_a_fork_reach_back(cli: Cli) -> None:
    found = cli("diff-checkpoints", "--from=phase1", "--to=phase1", f"--task={FORK}", "--json").json
    assert found["from"]["reference"] == f"{FORK}@1"


@pytest.mark.parametrize("phase", ["phase0x", "phase9"])
def test_phases_that_are_not_there(cli: Cli, phase: str) -> None:
    outcome = cli("diff-checkpoints", f"--from={phase}", "--to=phase1", f"--task={REVIEW}")
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")


def test_an_empty_store_has_no_newest_run(bare: Cli) -> None:
    assert bare("list-checkpoints", "--store", "memory:").code == 2
