"""Checking a workflow with models imports nothing of the libraries that run them."""

import subprocess
import sys

CODE = """
import sys
from pathlib import Path
from orchestra.agents.llm.cassette import Cassette
from orchestra.agents.llm.markdown import read_agent_file
from orchestra.agents.llm.models import key_name, missing_extra, missing_key, mistakes_of
from orchestra.agents.llm.prices import FREE, price_of, read_prices
from orchestra.agents.llm.skills import find_skills, offer_skills

agent = read_agent_file("---\\nmodel: openai:gpt-5\\ntools: a, b\\n---\\nDo it.")
for name in (agent.model, "anthropic:x", "google:x", "local", "test", "opnai:x"):
    list(mistakes_of(name)), key_name(name), missing_key(name), missing_extra(name)
assert price_of("test") == FREE
assert offer_skills(find_skills((), Path())) == ""
heavy = {"pydantic_ai", "pydantic", "openai", "anthropic", "genai_prices", "httpx2", "xllamacpp"}
print(sorted(heavy & sys.modules.keys()))
"""


def test_nothing_heavy_is_imported() -> None:
    environment = {"PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, check=True)
    assert run.stdout.decode().strip() == "[]"
