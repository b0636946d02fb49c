"""The JSON Schema of workflow files, which lets editors complete and check them while they are written."""

import json
from collections.abc import Iterable
from typing import Any, Final, Union

from pydantic import BaseModel, create_model
from pydantic.json_schema import GenerateJsonSchema

from orchestra.config.check.agents import agent_form
from orchestra.config.forms import Table
from orchestra.config.models import WorkflowForm
from orchestra.config.settings.models import SettingsForm
from orchestra.config.units import DURATION_PATTERN, shown_duration
from orchestra.ports.agent_kind import AgentKind

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_NAMED: Final = ("$defs", "properties")


def schema(kinds: Iterable[AgentKind]) -> dict[str, Any]:
    """The schema of a workflow file, with every short form and the keys of some kinds of agents."""
    agent: Any = Union[(str, *(agent_form(kind) for kind in kinds))]
    agents = (Table[agent], WorkflowForm.model_fields["agents"])
    whole = create_model("WorkflowForm", __base__=WorkflowForm, __doc__=WorkflowForm.__doc__, agents=agents)
    return _schema(whole, "orchestra workflow")


def settings_schema() -> dict[str, Any]:
    """The schema of the settings file."""
    return _schema(SettingsForm, "orchestra settings")


def _schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    made = model.model_json_schema(schema_generator=GenerateJsonSchema, mode="validation")
    tidied: dict[str, Any] = _tidy(made)
    return {"$schema": DIALECT, **tidied, "title": title}


def _tidy(part: Any, *, names: bool = False) -> Any:
    """Without what pydantic makes up: titles, empty defaults, microseconds; with the names people use."""
    if isinstance(part, list):
        return [_tidy(each) for each in part]
    if isinstance(part, str):
        return part.removesuffix("Form") if part.startswith("#/$defs/") else part
    if not isinstance(part, dict):
        return part
    kept = part if names else _kept(part)
    return {
        (key.removesuffix("Form") if key.endswith("Form") else key): _tidy(each, names=key in _NAMED)
        for key, each in kept.items()
    }


def _kept(part: dict[str, Any]) -> dict[str, Any]:
    kept = {key: each for key, each in part.items() if key not in ("title", "default")}
    default = part.get("default")
    if default not in (None, "", [], {}) and "$ref" not in part:
        lasting = any(each.get("pattern") == DURATION_PATTERN for each in part.get("anyOf", ()))
        kept["default"] = shown_duration(default) if lasting else default
    return kept


def schema_text(made: dict[str, Any]) -> str:
    """A schema as the text of its file."""
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"
