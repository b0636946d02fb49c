"""Where tools come from: Python modules, MCP servers, files of the workspace, skills, other agents."""

import ast
import glob
import inspect
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import attrs

from orchestra.agents.context import Context
from orchestra.agents.llm.files import FILE_TOOLS, SPELLINGS, WRITING_TOOLS, file_tools
from orchestra.agents.llm.markdown import AgentFile
from orchestra.agents.llm.mcp import (
    PREFIX,
    expand_servers,
    known_servers,
    missing_variables,
    open_servers,
    secret_texts,
    server_files,
    wanted_servers,
)
from orchestra.agents.llm.skills import find_skills, read_skill
from orchestra.agents.python.packages import import_agent
from orchestra.agents.python.source import parse_file, top_level_names
from orchestra.errors import BadAgent, BadAgentFile, BadName
from orchestra.expressions.expression import template
from orchestra.expressions.names import TASK_NAMES
from orchestra.ids import AgentId
from orchestra.ports.agent import Delegated, Errand, Secrets
from orchestra.ports.agent_kind import AgentMistake
from orchestra.suggest import meant

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

    from orchestra.agents.llm.kind import LlmOptions
    from orchestra.agents.llm.tools import ToolPolicy

OnUnknown: TypeAlias = Literal["rerun", "ask", "fail"]
TOOL_KEYS: Final = ("risky", "timeout", "output_chars", "on_unknown")
"""What may be said of one tool."""


AGENT: Final = "agent:"
"""What comes before the name of an agent that is a tool."""


def agent_names(file: AgentFile, options: "LlmOptions") -> tuple[str, ...]:
    """The agents of the workflow that are tools of an agent."""
    return tuple(each.removeprefix(AGENT) for each in tool_names(file, options) if each.startswith(AGENT))


def tool_names(file: AgentFile, options: "LlmOptions") -> tuple[str, ...]:
    """The tools of an agent as they are written, those of the file first."""
    return tuple(dict.fromkeys((*file.tools, *options.tools)))


def module_of(name: str) -> tuple[str, str]:
    """The module that a name stands for and the function in it; both empty when it is something else."""
    path, _, function = name.partition(":")
    return (path, function) if path.endswith(".py") else ("", "")


def tool_mistakes(file: AgentFile, options: "LlmOptions", folder: Path) -> Iterator[AgentMistake]:
    """Tools that nobody knows, modules and servers that are not there."""
    try:
        servers = known_servers(file, options.mcp, folder)
    except BadAgentFile as error:
        yield ("mcp",) if options.mcp else ("path",), str(error)
        servers = {}
    for name in tool_names(file, options):
        where = ("tools",) if name in options.tools else ("path",)
        module, _ = module_of(name)
        if module and not (folder / module).is_file():
            yield where, f"there is no file `{module}` for the tool `{name}` (looked in `{folder}`)"
        elif name.startswith(PREFIX) and name.removeprefix(PREFIX) not in servers:
            known = ", ".join(sorted(servers)) or "none"
            yield where, f"no MCP server is called `{name.removeprefix(PREFIX)}`; there are: {known}"
        elif name.startswith(AGENT):
            called, others = name.removeprefix(AGENT), set(tool_names(file, options)) - {name}
            if called in {_builtin(each) or each.partition(":")[2] for each in others}:
                yield where, f"two tools would be called `{called}`; call the agent otherwise"
        elif not module and not name.startswith(PREFIX) and _builtin(name) is None:
            hint = meant(name, {*FILE_TOOLS, *SPELLINGS})
            yield where, f"there is no tool `{name}`{hint}; a module of yours is written as `tools/name.py`"
        elif options.folder and _builtin(name) in WRITING_TOOLS:
            yield where, f"`{name}` writes, and what is in a `folder` is only read; leave one of them out"
    yield from _option_mistakes(file)
    try:
        yield from _risky_mistakes(file, options, folder)
        yield from _namesakes(file, options, folder)
    except BadAgent as error:  # a module that is not Python
        yield ("tools",) if options.tools else ("path",), str(error)
    try:
        find_skills((*file.skills, *options.skills), folder)
    except (BadAgentFile, BadName) as error:
        yield ("skills",) if options.skills else ("path",), str(error)


def _risky_mistakes(file: AgentFile, options: "LlmOptions", folder: Path) -> Iterator[AgentMistake]:
    """Names of risky tools that no tool has: such a call would not be asked about. Servers may have any."""
    names = tool_names(file, options)
    if wanted_servers(names) or any(
        module and not (folder / module).is_file() for module, _ in map(module_of, names)
    ):
        return
    known = {each for name in names for each in called_names(name, folder)}
    if file.skills or options.skills:
        known.add("read_skill")
    for place, risky in (("risky",), options.risky), (("path",), file.risky):
        for name in risky if isinstance(risky, tuple) else ():
            if name != "*" and "*" not in known and not known.issuperset(called_names(name, folder)):
                yield place, f"no tool of this agent is called `{name}`{meant(name, known)}"


def _option_mistakes(file: AgentFile) -> Iterator[AgentMistake]:
    """What the file says of one tool and nobody can use."""
    rules: dict[str, tuple[Callable[[Any], bool], str]] = {
        "risky": (lambda held: isinstance(held, bool), "`true` or `false`"),
        "timeout": (lambda held: _is_number(held) and 0 < held < math.inf, "a number of seconds above 0"),
        "output_chars": (lambda held: type(held) is int and held > 0, "a whole number above 0"),
        "on_unknown": (lambda held: held in get_args(OnUnknown), "`rerun`, `ask` or `fail`"),
    }
    for name, more in file.tool_options.items():
        for key, (is_right, wanted) in rules.items():
            if key in more and not is_right(more[key]):
                yield ("path",), f"`{key}` of the tool `{name}` is {wanted}, not {more[key]!r:.60}"


def _is_number(held: Any) -> bool:
    return isinstance(held, int | float) and not isinstance(held, bool)


def _namesakes(file: AgentFile, options: "LlmOptions", folder: Path) -> Iterator[AgentMistake]:
    """Tools that a model could not tell apart. Those of servers carry the server's name."""
    seen: dict[str, str] = {}
    for name in tool_names(file, options):
        module, function = module_of(name)
        if module and not (folder / module).is_file():
            continue
        defined = _defined_tools(folder / module, name) if module else [_builtin(name) or name]
        for each in [function] if function else defined:
            if seen.setdefault(each, name) != name:
                where = ("tools",) if name in options.tools else ("path",)
                yield where, f"two tools are called `{each}`: in `{seen[each]}` and in `{name}`"


def _defined_tools(path: Path, name: str) -> list[str]:
    """The public functions that stand in a module, as far as reading it tells."""
    body = parse_file(path, name).body
    functions = [each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [each for each in dict.fromkeys(functions) if not each.startswith("_")]


def tool_files(file: AgentFile, options: "LlmOptions", folder: Path) -> Iterator[Path]:
    """The files that say what tools do."""
    for name in tool_names(file, options):
        module, _ = module_of(name)
        if module:
            yield folder / module
    yield from (path for path in server_files(file, options.mcp, folder) if path.is_file())


def policies_of(file: AgentFile, options: "LlmOptions", folder: Path) -> "Mapping[str, ToolPolicy]":
    """How tools are treated, by patterns of the names that a model calls them by; `*` is for all."""
    from orchestra.agents.llm.tools import ToolPolicy

    common: dict[str, Any] = {"on_unknown": options.on_unknown}
    if options.tool_timeout is not None:
        common["timeout"] = options.tool_timeout
    servers = wanted_servers(tool_names(file, options))
    risky = [*options.risky, *(file.risky if isinstance(file.risky, tuple) else ["*"] if file.risky else [])]
    policies = {"*": ToolPolicy(risky="*" in risky, **common)}
    for name, more in file.tool_options.items():
        known = {key: more[key] for key in TOOL_KEYS if key in more}
        policies |= dict.fromkeys(_patterns(name, servers, folder), ToolPolicy(**{**common, **known}))
    for pattern in (each for name in risky for each in _patterns(name, servers, folder)):
        policies[pattern] = attrs.evolve(policies.get(pattern, policies["*"]), risky=True)
    for name in agent_names(file, options):
        policies[name] = attrs.evolve(policies.get(name, policies["*"]), is_errand=True)
    return policies


def called_names(name: str, folder: Path) -> list[str]:
    """The names, or patterns of names, by which a model calls the tools that a list calls so."""
    module, function = module_of(name)
    if module:
        own = top_level_names(parse_file(folder / module, name))
        if own is None:  # only running it would tell: all are meant
            return ["*"]
        return [function] if function else sorted(each for each in own if not each.startswith("_"))
    if name.startswith(AGENT):
        return [name.removeprefix(AGENT)]
    return [_server_tool(name, "*")] if name.startswith(PREFIX) else [_builtin(name) or name]


def _patterns(name: str, servers: list[str], folder: Path) -> list[str]:
    """Patterns of the tools that a name may mean: that of a server's tool may stand without the server's."""
    is_bare = not name.startswith(PREFIX) and not module_of(name)[0]
    of_servers = [_server_tool(each, name) for each in servers] if is_bare else []
    return [*called_names(name, folder), *of_servers]


def _server_tool(server: str, tool: str) -> str:
    return f"{glob.escape(server.removeprefix(PREFIX))}_{tool}"


def load_functions(
    file: AgentFile, options: "LlmOptions", folder: Path
) -> dict[str, list[Callable[..., Any]]]:
    """The functions of modules, by what the list calls them; importing may take a while, and raise."""
    named = {name: module_of(name) for name in tool_names(file, options)}
    return {name: functions_of(folder / module, one) for name, (module, one) in named.items() if module}


def open_tools(
    ctx: Context,
    file: AgentFile,
    options: "LlmOptions",
    folder: Path,
    functions: Mapping[str, list[Callable[..., Any]]],
    servers: Mapping[str, Mapping[str, Any]],
) -> "list[AbstractToolset[Any]]":
    """The tools of an agent; MCP servers run while a model may call them."""
    from pydantic_ai.toolsets import FunctionToolset

    own: FunctionToolset[Any] = FunctionToolset()
    builtin = _file_tools(ctx, options)
    for called in agent_names(file, options):
        about = (
            f"Give the agent {called} a task, and get its result. {ctx._assignment.agents.get(called, '')}"
        )
        own.add_function(_errand_giver(ctx, AgentId(called)), name=called, description=about.strip())
    for name in tool_names(file, options):
        if name in functions:
            for each in functions[name]:
                own.add_function(each)
        elif not name.startswith(PREFIX):
            known = _builtin(name)
            if known is not None and known in builtin:
                own.add_function(builtin[known], name=known)
    skills = find_skills((*file.skills, *options.skills), folder)
    if skills:
        own.add_function(_skill_reader(skills), name="read_skill")
    return [own, *open_servers(servers)]


async def prepare_servers(
    ctx: Context, file: AgentFile, options: "LlmOptions", folder: Path
) -> dict[str, dict[str, Any]]:
    """The MCP servers of an agent, ready to be opened; waits until the variables they need are there."""
    known = known_servers(file, options.mcp, folder)
    wanted = {name: known[name] for name in wanted_servers(tool_names(file, options))}
    needed = {name: await ctx.require(name, "an MCP server needs it") for name in missing_variables(wanted)}
    servers = expand_servers(wanted, {**os.environ, **needed})
    ctx._link.send(Secrets(texts=tuple(secret_texts(servers))))
    return servers


def stand_in_tools(file: AgentFile, options: "LlmOptions", folder: Path) -> "AbstractToolset[Any]":
    """Tools of the same names that do nothing. No module is imported, and no server started."""
    from pydantic_ai import Tool
    from pydantic_ai.toolsets import FunctionToolset

    names = [each for name in tool_names(file, options) for each in called_names(name, folder)]
    skills = ["read_skill"] if find_skills((*file.skills, *options.skills), folder) else []
    anything = {"type": "object", "properties": {}}
    made: FunctionToolset[Any] = FunctionToolset()
    for name in dict.fromkeys(each for each in (*names, *skills) if "*" not in each):
        made.add_tool(Tool.from_schema(_do_nothing, name, None, anything))
    return made


def _do_nothing(**_: Any) -> str:
    return "(a dry run: nothing was done)"


def functions_of(path: Path, function: str = "") -> list[Callable[..., Any]]:
    """The tools in a module: one function, or all that are public and its own; raises `BadAgentFile`."""
    module = import_agent(path)
    own = {
        name: held
        for name, held in vars(module).items()
        if inspect.isfunction(held) and held.__module__ == module.__name__ and not name.startswith("_")
    }
    if function and function not in own:
        raise BadAgentFile(
            file=str(path), line=1, reason=f"it has no function `{function}`{meant(function, own)}", advice=""
        )
    return [own[function]] if function else list(own.values())


def _file_tools(ctx: Context, options: "LlmOptions") -> Mapping[str, Callable[..., Any]]:
    """The tools for files: of the workspace, or of the folder that is named; of a file that of its own."""
    if not options.folder:
        return file_tools(ctx.workspace)
    named = template(options.folder, TASK_NAMES).render(task_values(ctx))
    folder = (ctx.project / named).resolve()
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {named!r} for the tools of {ctx.agent}")
    return file_tools(folder.parent if folder.is_file() else folder, read_only=True)


def task_values(ctx: Context) -> dict[str, Any]:
    """What templates of an agent may name, as its assignment has it."""
    return {
        "inputs": ctx.inputs,
        "context": ctx.context,
        "needs": ctx.needs,
        "item": ctx.item,
        "index": ctx.index,
        "phase": ctx.phase,
        "visit": ctx.visit,
        "round": ctx.round,
        "feedback": list(ctx.feedback),
        "run": ctx.run,
    }


def _builtin(name: str) -> str | None:
    plain = SPELLINGS.get(name, name)
    return plain if plain in FILE_TOOLS else None


def _errand_giver(ctx: Context, agent: AgentId) -> Callable[..., Any]:
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.tools import RunContext

    async def give(run: RunContext[Any], task: str) -> Any:
        """Give an agent a task.

        Args:
            run: The run.
            task: What it is to do, in full: it sees nothing of this conversation.
        """
        assert run.tool_call_id is not None, "BUG: calls without an id are refused"
        outcome: Errand = await ctx._link.call(Delegated(call=run.tool_call_id, agent=agent, task=task))
        if outcome.error:
            raise ToolFailed(f"{agent} brought no result: {outcome.error}")
        if outcome.confidence is None:
            return outcome.output
        return {"result": outcome.output, "confidence": outcome.confidence}

    give.__annotations__["run"] = RunContext[Any]
    return give


def _skill_reader(skills: Any) -> Callable[..., str]:
    by_name = {skill.name: skill for skill in skills}

    def read_skill_file(skill: str, file: str = "SKILL.md") -> str:
        """Read a skill: what it says, or a file that it names."""
        if skill not in by_name:
            raise ValueError(f"there is no skill {skill!r}; there are: {', '.join(by_name)}")
        return read_skill(by_name[skill], file)

    return read_skill_file
