"""MCP servers as tools: read from the `mcpServers` files that people have, over stdio and HTTP."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from orchestra.agents.llm.markdown import AgentFile
from orchestra.engine.redact import names_secret
from orchestra.errors import BadAgentFile

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

PREFIX: Final = "mcp:"
"""Before the name of a server in a list of tools."""
_VARIABLE: Final = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")
_SECRET_HEADERS: Final = ("authorization", "proxy-authorization", "cookie")
_ADVICE: Final = "See docs/how-to/use-tools.md."


def server_files(file: AgentFile, more: str, folder: Path) -> list[Path]:
    """The files that name servers."""
    return [folder / each for each in (*file.mcp, more) if each.endswith(".json")]


def known_servers(file: AgentFile, more: str, folder: Path) -> dict[str, Mapping[str, Any]]:
    """Every server that an agent's files name, by its name; raises `BadAgentFile`."""
    found: dict[str, Any] = dict(file.mcp_servers)
    for path in server_files(file, more, folder):
        found |= _read_servers(path)
    for name, server in found.items():
        if not isinstance(server, Mapping) or not {"command", "url"} & set(server):
            reason = f"the MCP server `{name}` has neither `command` nor `url`"
            raise BadAgentFile(file=file.file, line=1, reason=reason, advice=_ADVICE)
    return found


def _read_servers(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_bytes())
        servers = told.get("mcpServers", told.get("servers"))
    except (OSError, ValueError, AttributeError) as error:
        reason = f"it cannot be read as a file with `mcpServers` ({error})"
        raise BadAgentFile(file=str(path), line=1, reason=reason, advice=_ADVICE) from None
    if not isinstance(servers, dict):
        raise BadAgentFile(file=str(path), line=1, reason="it has no `mcpServers`", advice=_ADVICE)
    return servers


def wanted_servers(tools: Iterable[str]) -> list[str]:
    """The servers that a list of tools names."""
    return [name.removeprefix(PREFIX) for name in tools if name.startswith(PREFIX)]


def missing_variables(servers: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> list[str]:
    """The variables that servers need and that are not set."""
    found = _VARIABLE.finditer(json.dumps(servers))
    named = dict.fromkeys(each["name"] for each in found if each["default"] is None)
    return [name for name in named if name not in environment]


def expand_servers(servers: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Servers as they are opened: `${NAME}` and `${NAME:-default}` are replaced."""
    expanded: dict[str, dict[str, Any]] = _expand(servers, environment)
    return expanded


def secret_texts(servers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What opened servers are told that must not be seen: variables, headers and parts of a URL, by name."""
    found: list[str] = []
    for server in servers.values():
        query = parse_qsl(urlsplit(str(server.get("url", ""))).query)
        for name, held in (*(server.get("env") or {}).items(), *query):
            found += [str(held)] if names_secret(name) else []
        for name, held in (server.get("headers") or {}).items():
            if name.lower() in _SECRET_HEADERS or names_secret(name.replace("-", "_")):
                found += [str(held), *str(held).split()[1:]]  # `Bearer …`
    return found


def open_servers(servers: Mapping[str, Mapping[str, Any]]) -> "Iterator[AbstractToolset[Any]]":
    """The tools of servers, each named after its server; they are started when the agent is."""
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    for name, server in servers.items():
        if "command" in server:
            transport: Any = StdioTransport(
                command=server["command"],
                args=[str(each) for each in server.get("args") or ()],
                env=server.get("env"),
                cwd=server.get("cwd"),
                keep_alive=False,
            )
            opened: MCPToolset[Any] = MCPToolset(transport, id=name, tool_error_behavior="error")
        else:
            headers = server.get("headers")
            opened = MCPToolset(server["url"], id=name, headers=headers, tool_error_behavior="error")
        yield opened.prefixed(name)


def _expand(value: Any, environment: Mapping[str, str]) -> Any:
    def replace(match: "re.Match[str]") -> str:
        return environment.get(match["name"], match["default"] or "")

    match value:
        case str():
            return _VARIABLE.sub(replace, value)
        case Mapping():
            return {name: _expand(held, environment) for name, held in value.items()}
        case list():
            return [_expand(held, environment) for held in value]
        case _:
            return value
