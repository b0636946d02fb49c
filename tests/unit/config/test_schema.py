"""The JSON Schema in `configs/` is that of the models, and says what an editor needs."""

import json
from pathlib import Path
from typing import Any

from orchestra.app.workflow_files import workflow_schema as schema
from orchestra.config.models import WorkflowForm
from orchestra.config.schema import schema_text, settings_schema

CONFIGS = Path(__file__).parents[3] / "configs"


def test_the_schema_file_is_up_to_date() -> None:
    again = "it has changed; write it again with: orchestra schema > configs/workflow.schema.json"
    assert (CONFIGS / "workflow.schema.json").read_text(encoding="utf-8") == schema_text(schema()), again


def test_every_key_is_described() -> None:
    for made in (schema(), settings_schema()):
        silent = [
            f"{name}.{key}"
            for name, each in [("", made), *made["$defs"].items()]
            for key, value in each.get("properties", {}).items()
            if "description" not in value and "$ref" not in value
        ]
        assert silent == []


def test_every_key_of_the_models_is_there() -> None:
    made = schema()
    keys = {field.alias or name for name, field in WorkflowForm.model_fields.items()}
    assert set(made["properties"]) == keys
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert made["additionalProperties"] is False
    assert made["required"] == ["name", "phases"]


def test_short_forms_are_allowed() -> None:
    made = schema()
    phase = made["$defs"]["Phase"]["properties"]
    assert {"type": "string"} in made["properties"]["agents"]["additionalProperties"]["anyOf"]
    assert {"type": "null"} in phase["specialists"]["additionalProperties"]["anyOf"]
    assert {"type": "string"} in phase["next"]["anyOf"]
    assert phase["timeout"]["anyOf"][0]["pattern"].startswith("^([0-9]+")
    words = json.dumps(made["$defs"]["Checkpoint"]["properties"]["on"])
    assert '"phase_completion"' in words
    assert '"phase_completed"' in words


def test_defaults_are_written_as_people_write_them() -> None:
    made = schema()["$defs"]
    assert made["Retry"]["properties"]["timeout"]["default"] == "5m"
    assert made["Checkpoint"]["properties"]["every"]["default"] == "10m"
    assert not _has(made, "title")


def _has(part: Any, key: str) -> bool:
    if isinstance(part, dict):
        return key in part or any(_has(each, key) for each in part.values())
    return isinstance(part, list) and any(_has(each, key) for each in part)
