"""The page on telemetry names everything there is, and the settings reach the engine."""

from pathlib import Path

from orchestra.config.settings.resolve import engine_settings, resolve
from orchestra.telemetry import names

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "telemetry.md"


def test_every_name_is_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    told = [value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)]
    assert len(told) > 50
    assert [each for each in told if each not in page] == []


def test_settings_from_the_environment_reach_the_engine() -> None:
    engine = engine_settings(resolve(environment={"ORCHESTRA_TELEMETRY_ENABLED": "false"}))
    assert (engine.telemetry, engine.events) == (False, True)
    assert not engine.telemetry_content
    engine = engine_settings(resolve(environment={"ORCHESTRA_TELEMETRY_CONTENT": "true"}))
    assert engine.telemetry_content
    engine = engine_settings(resolve(environment={"ORCHESTRA_TELEMETRY_EVENTS": "false"}))
    assert (engine.telemetry, engine.events) == (True, False)
