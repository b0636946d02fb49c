"""Settings: where each value comes from, and what becomes of them."""

from pathlib import Path

import pytest

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.config.settings.resolve import (
    ResolvedSetting,
    checkpoint_settings,
    engine_settings,
    read_settings,
    recovery_policy,
    resolve,
    setting_names,
    variable,
)
from orchestra.engine.settings import EngineSettings
from orchestra.errors import BadSetting, BadWorkflow
from orchestra.model.workflow import RecoveryPolicy


def _by_name(found: tuple[ResolvedSetting, ...]) -> dict[str, ResolvedSetting]:
    return {each.name: each for each in found}


def test_defaults_are_those_of_the_classes() -> None:
    resolved = resolve()
    assert checkpoint_settings(resolved) == CheckpointSettings()
    assert engine_settings(resolved) == EngineSettings()
    assert recovery_policy(resolved) == RecoveryPolicy()
    assert {each.source for each in resolved} == {"default"}
    assert tuple(each.name for each in resolved) == setting_names()


def test_later_sources_win_and_are_remembered() -> None:
    name = "checkpoint.interval"
    variables = {"ORCHESTRA_CHECKPOINT_INTERVAL": "3"}
    told = [
        resolve(file={name: 1}),
        resolve(file={name: 1}, workflow={name: 2}, workflow_name="flow.yaml"),
        resolve(file={name: 1}, workflow={name: 2}, environment=variables),
        resolve(file={name: 1}, workflow={name: 2}, environment=variables, flags={name: 4}),
    ]
    found = [_by_name(each)[name] for each in told]
    assert [each.value for each in found] == [1, 2, 3, 4]
    sources = ["configs/orchestra.yaml", "flow.yaml", "$ORCHESTRA_CHECKPOINT_INTERVAL", "--interval"]
    assert [each.source for each in found] == sources


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("checkpoint.every", "5m", 300_000_000),
        ("checkpoint.every", "90", 90_000_000),
        ("checkpoint.enabled", "false", False),
        ("checkpoint.memory_share", "0.5", 0.5),
        ("checkpoint.memory_share", "1", 1.0),
        ("checkpoint.on", "error, completed", ["error_encountered", "completed"]),
        ("checkpoint.retention.days", "null", None),
        ("checkpoint.retention.days", "90", 90),
        ("checkpoint.size_limit_bytes", "10MB", 10 * 1024 * 1024),
        ("checkpoint.store", "memory:", "memory:"),
        ("checkpoint.store", "12", "12"),
        ("recovery.on_failure", "restart,fail", ["restart", "fail"]),
        ("recovery.timeout", "1m", 60_000_000),
        ("performance.outputs", "elsewhere", "elsewhere"),
    ],
)
def test_variables_and_flags_are_text(name: str, text: str, value: object) -> None:
    assert _by_name(resolve(environment={variable(name): text}))[name].value == value
    assert _by_name(resolve(flags={name: text}))[name].value == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("checkpoint.every", "soon"),
        ("checkpoint.enabled", "perhaps"),
        ("checkpoint.memory_share", "2"),
        ("checkpoint.memory_share", "0"),
        ("checkpoint.on", "eror"),
        ("checkpoint.interval", "9" * 3000),
        ("performance.process_concurrency", "0"),
    ],
)
def test_what_cannot_be_honoured_names_its_variable(name: str, text: str) -> None:
    with pytest.raises(BadSetting, match=rf"\${variable(name)}"):
        resolve(environment={variable(name): text})


def test_a_misspelt_variable_or_flag_is_noticed() -> None:
    with pytest.raises(BadSetting, match="did you mean `ORCHESTRA_CHECKPOINT_STORE`"):
        resolve(environment={"ORCHESTRA_CHECKPOINT_STOR": "x"})
    with pytest.raises(BadSetting, match=r"did you mean `checkpoint\.store`"):
        resolve(flags={"checkpoint.stor": "x"})
    assert resolve(environment={"ORCHESTRA_TRACE": "1", "HOME": "x"}) == resolve()


def test_the_short_variable_for_the_store_still_works() -> None:
    found = _by_name(resolve(environment={"ORCHESTRA_STORE": "memory:"}))["checkpoint.store"]
    assert (found.value, found.source) == ("memory:", "$ORCHESTRA_STORE")


def test_a_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "orchestra.yaml"
    assert read_settings(file) == {}
    file.write_text("checkpoint: {store: 'memory:', retention: {days: 90}}\nrecovery: {auto: false}\n")
    said = read_settings(file)
    assert said == {"checkpoint.store": "memory:", "checkpoint.retention.days": 90, "recovery.auto": False}
    resolved = resolve(file=said)
    assert checkpoint_settings(resolved).retention.days == 90
    assert recovery_policy(resolved) == RecoveryPolicy(auto=False)
    file.write_text("")
    assert read_settings(file) == {}


@pytest.mark.parametrize(
    ("written", "trigger"),
    [
        ("periodic", "periodic"),
        ("phase_completion", "phase_completed"),
        ("dependency_request", "dependency_request"),
        ("user_question", "user_question"),
        ("rate_limit", "rate_limited"),
        ("error", "error_encountered"),
        ("manual_pause", "paused"),
        ("layer", "phase_completed"),
        ("after_node", "specialist_finished"),
        ("step", "milestone"),
        ("launched", "agent_launched"),
        ("workflow_adjustment", "decision"),
    ],
)
def test_the_names_of_the_source_documents_lead_to_triggers(
    tmp_path: Path, written: str, trigger: str
) -> None:
    """CHECKLIST 000.13: the first seven are what an agent manager calls them."""
    file = tmp_path / "orchestra.yaml"
    file.write_text(f"checkpoint: {{on: [{written}]}}\n")
    assert checkpoint_settings(resolve(file=read_settings(file))).on == {trigger}
    assert checkpoint_settings(resolve(environment={variable("checkpoint.on"): written})).on == {trigger}


def test_mistakes_in_a_settings_file_have_a_place(tmp_path: Path) -> None:
    file = tmp_path / "orchestra.yaml"
    file.write_text("checkpoint:\n  stor: x\n  every: soon\nperformance: {outputs: 3}\n")
    with pytest.raises(BadWorkflow) as caught:
        read_settings(file)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("orchestra.yaml:2:3: unknown key `stor`; did you mean `store`?")
    assert ":3:10: `every`: 'soon' is not a duration" in lines[1]
    assert ":4:24: `outputs`: a text is needed" in lines[2]
    file.write_text("a: *b\n")
    with pytest.raises(BadWorkflow, match="the alias"):
        read_settings(file)


def test_settings_that_do_not_fit_are_refused() -> None:
    for wrong in ({"every_us": -1}, {"memory_share": 0.0}, {"process_concurrency": 0}):
        with pytest.raises(BadSetting):
            EngineSettings(**wrong)
    with pytest.raises(BadSetting, match="encrypted"):
        checkpoint_settings(resolve(flags={"checkpoint.encryption": True}))
