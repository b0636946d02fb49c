"""Who offers language models: what each needs to be used, told without importing anything of theirs.

The names are those of pydantic-ai; a test keeps the list equal to what it can open by name.
"""

from collections.abc import Mapping
from typing import Final

import attrs

OUR_EXTRAS: Final = frozenset(
    ("anthropic", "bedrock", "cohere", "google", "groq", "huggingface", "local", "mistral", "openai", "xai")
)
"""Extras of orchestra itself; what is rarer comes as an extra of pydantic-ai."""
GATEWAY: Final = "gateway/"
"""Before the name of a provider that is reached through pydantic's gateway."""


@attrs.frozen(kw_only=True)
class ModelProvider:
    """What it takes to use the models of one provider."""

    module: str = "openai"  # that must be installed
    extra: str = "openai"  # that installs it
    keys: tuple[str, ...] = ()  # variables that may hold the key, the usual one first; none: no key is needed
    key_argument: str = "api_key"  # what pydantic-ai calls the key
    url: str = ""  # the variable that says where its server is
    url_argument: str = "base_url"  # what pydantic-ai calls the place; empty: only a client can be sent there
    free_at_url: bool = False  # whether a server of one's own needs no key


def _compatible(name: str, *keys: str) -> ModelProvider:
    """A provider that speaks OpenAI's language, at a place that pydantic-ai has fixed."""
    return ModelProvider(keys=keys or (f"{name}_API_KEY",), url=f"{name}_BASE_URL", url_argument="")


_OPENAI: Final = ModelProvider(keys=("OPENAI_API_KEY",), url="OPENAI_BASE_URL", free_at_url=True)
_AZURE: Final = ModelProvider(
    keys=("AZURE_OPENAI_API_KEY",), url="AZURE_OPENAI_ENDPOINT", url_argument="azure_endpoint"
)

PROVIDERS: Final[Mapping[str, ModelProvider]] = {
    "alibaba": ModelProvider(keys=("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"), url="ALIBABA_BASE_URL"),
    "anthropic": ModelProvider(
        module="anthropic", extra="anthropic", keys=("ANTHROPIC_API_KEY",), url="ANTHROPIC_BASE_URL"
    ),
    "azure": _AZURE,
    "azure-responses": _AZURE,
    "bedrock": ModelProvider(module="boto3", extra="bedrock", url="AWS_ENDPOINT_URL"),
    "bedrock-mantle": ModelProvider(module="botocore", extra="bedrock-mantle", url="AWS_ENDPOINT_URL"),
    "cerebras": _compatible("CEREBRAS"),
    "cohere": ModelProvider(module="cohere", extra="cohere", keys=("CO_API_KEY",)),
    "crusoe": _compatible("CRUSOE"),
    "deepseek": _compatible("DEEPSEEK"),
    "fireworks": _compatible("FIREWORKS"),
    "github-copilot": ModelProvider(
        keys=("GITHUB_COPILOT_API_KEY", "GITHUB_COPILOT_API_TOKEN", "COPILOT_GITHUB_TOKEN"),
        url="GITHUB_COPILOT_BASE_URL",
    ),
    "google": ModelProvider(
        module="google.genai",
        extra="google",
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        url="GOOGLE_GEMINI_BASE_URL",
    ),
    "google-cloud": ModelProvider(module="google.genai", extra="google", url="GOOGLE_VERTEX_BASE_URL"),
    "groq": ModelProvider(module="groq", extra="groq", keys=("GROQ_API_KEY",), url="GROQ_BASE_URL"),
    "heroku": ModelProvider(keys=("HEROKU_INFERENCE_KEY",), url="HEROKU_INFERENCE_URL"),
    "huggingface": ModelProvider(
        module="huggingface_hub", extra="huggingface", keys=("HF_TOKEN",), url="HF_BASE_URL"
    ),
    "litellm": ModelProvider(url="LITELLM_BASE_URL", url_argument="api_base"),
    "meta": _compatible("META"),
    "mistral": ModelProvider(
        module="mistralai", extra="mistral", keys=("MISTRAL_API_KEY",), url="MISTRAL_BASE_URL"
    ),
    "moonshotai": ModelProvider(keys=("MOONSHOTAI_API_KEY",), url="MOONSHOTAI_BASE_URL"),
    "nebius": _compatible("NEBIUS"),
    "ollama": ModelProvider(url="OLLAMA_BASE_URL"),
    "openai": _OPENAI,
    "openai-chat": _OPENAI,
    "openai-codex": ModelProvider(),
    "openai-decisions": _OPENAI,
    "openai-responses": _OPENAI,
    "openrouter": _compatible("OPENROUTER"),
    "ovhcloud": _compatible("OVHCLOUD"),
    "sambanova": ModelProvider(keys=("SAMBANOVA_API_KEY",), url="SAMBANOVA_BASE_URL"),
    "snowflake": ModelProvider(keys=("SNOWFLAKE_TOKEN",), key_argument="token", url="SNOWFLAKE_BASE_URL"),
    "system-one": ModelProvider(module="httpx2", extra="llm", url="SYSTEM_ONE_BASE_URL"),
    "together": _compatible("TOGETHER"),
    "typesafe": ModelProvider(
        module="typesafe_sdk", extra="typesafe", keys=("TYPESAFE_API_KEY",), url="TYPESAFE_BASE_URL"
    ),
    "vercel": _compatible("VERCEL", "VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
    "vllm": ModelProvider(url="VLLM_BASE_URL"),
    "xai": ModelProvider(module="xai_sdk", extra="xai", keys=("XAI_API_KEY",)),
    "zai": ModelProvider(keys=("ZAI_API_KEY",), url="ZAI_BASE_URL"),
}

GATEWAY_KEYS: Final = ("PYDANTIC_AI_GATEWAY_API_KEY", "PAIG_API_KEY")
GATEWAY_PROVIDERS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "chat": "openai-chat",
    "converse": "bedrock",
    "google": "google-cloud",
    "google-cloud": "google-cloud",
    "groq": "groq",
    "openai": "openai",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "responses": "openai-responses",
}
"""What can be reached through the gateway, and which provider's package that takes."""

SHORT_NAMES: Final[Mapping[str, str]] = {
    "haiku": "anthropic:claude-haiku-5-5",
    "opus": "anthropic:claude-opus-5-5",
    "sonnet": "anthropic:claude-sonnet-5-5",
}
"""What files for coding agents call some models."""
FAMILIES: Final[Mapping[str, str]] = {
    "claude-": "anthropic",
    "command-": "cohere",
    "deepseek-": "deepseek",
    "gemini-": "google",
    "gpt-": "openai",
    "grok-": "xai",
    "mistral-": "mistral",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
}
"""How names of models begin that are known without their provider."""
