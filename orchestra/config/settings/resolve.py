"""Settings, resolved: defaults < `configs/orchestra.yaml` < workflow < environment < flags.

Every resolved setting remembers where its value came from, so that `orchestra config` can answer "why?".
Names are dotted (`checkpoint.retention.days`); the environment says `ORCHESTRA_CHECKPOINT_RETENTION_DAYS`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import attrs
from pydantic import BaseModel, ValidationError

from orchestra.checkpoint.settings import MARKED_TRIGGERS, CheckpointSettings, RetentionSettings
from orchestra.config.check.validate import mistakes
from orchestra.config.problems import Problem, bad_workflow
from orchestra.config.read.scalars import BadScalar, read_plain
from orchestra.config.read.source import check_text, read_text
from orchestra.config.read.yaml_tree import read_tree
from orchestra.config.settings.models import SettingsForm
from orchestra.engine.settings import EngineSettings
from orchestra.errors import BadSetting
from orchestra.model.workflow import RecoveryPolicy
from orchestra.ports.store import STORE_VARIABLE
from orchestra.suggest import meant

PREFIX: Final = "ORCHESTRA_"
DEFAULT_FILE: Final = Path("configs/orchestra.yaml")
_SECTIONS: Final = ("checkpoint", "recovery", "performance", "telemetry")


@attrs.frozen
class ResolvedSetting:
    """A setting, its value, and who gave it."""

    name: str
    value: Any
    source: str  # `default`, a file, `$VARIABLE` or a flag


def setting_names() -> tuple[str, ...]:
    """Every setting there is, by dotted name."""
    return tuple(_defaults())


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.replace(".", "_").upper()


def read_settings(file: Path = DEFAULT_FILE) -> dict[str, Any]:
    """What a settings file says, by dotted name; nothing without a file. Raises `BadWorkflow`."""
    if not file.exists():
        return {}
    text = read_text(file, str(file))
    check_text(text, str(file))
    tree = read_tree(text)
    if tree.problems or not tree.whole:
        raise bad_workflow(str(file), tree.problems or [Problem(1, 1, "it cannot be read")])
    try:
        form = SettingsForm.model_validate({} if tree.data is None else tree.data)
    except ValidationError as error:
        raise bad_workflow(str(file), tree.places.problems(mistakes(error, SettingsForm))) from None
    return written_settings(form)


def written_settings(form: BaseModel, prefix: str = "") -> dict[str, Any]:
    """What was written into a form, by dotted name."""
    return dict(_flat(form, prefix, written=True))


def resolve(
    *,
    file: Mapping[str, Any] | None = None,
    workflow: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    file_name: str = str(DEFAULT_FILE),
    workflow_name: str = "the workflow",
) -> tuple[ResolvedSetting, ...]:
    """Every setting with its value and source; raises `BadSetting`.

    `file` and `workflow` hold checked values by dotted name (`read_settings`, `LoadedWorkflow.settings`);
    variables and flags hold text, or values as they would stand in YAML.
    """
    written = ((_defaults(), "default"), (file or {}, file_name), (workflow or {}, workflow_name))
    settings = [(name, value, source) for layer, source in written for name, value in layer.items()]
    settings += [*_from_environment(environment or {}), *_from_flags(flags or {})]
    return tuple({name: ResolvedSetting(name, value, source) for name, value, source in settings}.values())


def checkpoint_settings(resolved: Iterable[ResolvedSetting]) -> CheckpointSettings:
    """The settings of the snapshot engine; raises `BadSetting`."""
    values = _section(resolved, "checkpoint")
    retention = {key.partition(".")[2]: values.pop(key) for key in list(values) if "." in key}
    values["on"] = frozenset(values["on"])
    del values["every"], values["memory_share"], values["json_files"]
    return CheckpointSettings(**values, retention=RetentionSettings(**retention))


def engine_settings(resolved: Iterable[ResolvedSetting]) -> EngineSettings:
    """The settings of the engine; raises `BadSetting`."""
    settings = tuple(resolved)
    checkpoint, told = _section(settings, "checkpoint"), _section(settings, "telemetry")
    return EngineSettings(
        every_us=checkpoint["every"],
        memory_share=checkpoint["memory_share"],
        json_files=checkpoint["json_files"],
        telemetry=told["enabled"],
        telemetry_content=told["content"],
        events=told["events"],
        **_section(settings, "performance"),
    )


def recovery_policy(resolved: Iterable[ResolvedSetting]) -> RecoveryPolicy:
    """The recovery policy in force: the workflow's, unless the environment or a flag says otherwise."""
    values = _section(resolved, "recovery")
    values["on_failure"] = tuple(values["on_failure"])
    return RecoveryPolicy(timeout_us=values.pop("timeout"), **values)


@cache
def _defaults() -> Mapping[str, Any]:
    return dict(_flat(SettingsForm())) | {"checkpoint.on": sorted(MARKED_TRIGGERS)}


def _flat(form: BaseModel, prefix: str = "", *, written: bool = False) -> Iterator[tuple[str, Any]]:
    """The fields of a form by dotted name; or only what was written into it."""
    for name in type(form).model_fields:
        value = getattr(form, name)
        if written and name not in form.model_fields_set:
            continue
        if isinstance(value, BaseModel):
            yield from _flat(value, f"{prefix}{name}.", written=written)
        else:
            yield prefix + name, value


def _section(resolved: Iterable[ResolvedSetting], section: str) -> dict[str, Any]:
    start = f"{section}."
    return {each.name.removeprefix(start): each.value for each in resolved if each.name.startswith(start)}


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    known = {variable(name): name for name in setting_names()}
    if environment.get(STORE_VARIABLE):
        yield "checkpoint.store", environment[STORE_VARIABLE], f"${STORE_VARIABLE}"
    for name in sorted(environment):
        if name in known:
            yield known[name], _convert(known[name], environment[name], f"${name}"), f"${name}"
        elif name.startswith(tuple(f"{PREFIX}{section.upper()}_" for section in _SECTIONS)):
            reason = f"there is no such setting{meant(name, known)}"
            raise BadSetting(setting=f"${name}", value=environment[name], reason=reason)


def _from_flags(flags: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    for name, value in flags.items():
        if name not in _defaults():
            reason = f"there is no such setting{meant(name, setting_names())}"
            raise BadSetting(setting=name, value=value, reason=reason)
        yield name, _convert(name, value, name), f"--{name.rpartition('.')[2].replace('_', '-')}"


def _convert(name: str, given: Any, shown: str) -> Any:
    """A value as the setting's model takes it; raises `BadSetting`."""
    try:
        nested = _plain(name, given) if isinstance(given, str) else given
        for step in reversed(name.split(".")):
            nested = {step: nested}
        form = SettingsForm.model_validate(nested)
    except BadScalar as bad:
        raise BadSetting(setting=shown, value=given, reason=str(bad)) from None
    except ValidationError as error:
        first = next(mistakes(error, SettingsForm)).message
        raise BadSetting(setting=shown, value=given, reason=first) from None
    return attrgetter(name)(form)


def _plain(name: str, text: str) -> Any:
    default = _defaults()[name]
    if isinstance(default, list):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text if isinstance(default, str) else read_plain(text.strip())
