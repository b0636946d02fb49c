"""Docs: public parts without a word about them, and words that are not true any more."""

import ast
import builtins
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import unquote

from _finding import Hit
from _nodes import FUNCTIONS
from _project import Project, Source
from _specialist import review
from _tools import Tools
from _walk import all_files

from orchestra import Result

MIN_LINES = 4
MAX_LINES = 300
_RAISES = re.compile(r"^\s*:(?:raises?|exception)\s|^\s*Raises(?::[ \t]*$|\s*\n\s*-{4,})", re.MULTILINE)
_OWN_WAY = re.compile(r"(NotImplemented|Assertion|Type)Error|Stop(Async)?Iteration|SystemExit")
_DOCSTRING = re.compile(r"^[ \t]+[rRuU]?(\"\"\"|\'\'\')(?P<text>(?s:.*?))\1", re.MULTILINE)
_PLACEHOLDER = re.compile(
    r"\W*(todo|fixme|tbd|xxx|lorem ipsum|description|docstring|_summary_)\b\W*.{0,20}", re.IGNORECASE
)
_PARAMETER = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:\n]*\s)?\*{0,2}(\w+)\s*:")
_KEEPING = ("classmethod", "staticmethod", "abstractmethod")  # decorators that keep the parameters
MAX_PAGES = 300
_README = re.compile(r"readme(\.(md|markdown|rst|txt))?$", re.IGNORECASE)
_FILE = re.compile(r"\.(md|markdown|rst|txt|py|toml|ya?ml|png|svg|jpg|gif|ipynb)$")
_LINK = re.compile(r"!?\[[^\]\n]*\]\(<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
_RST_LINK = re.compile(r"`[^`<]+<([^>\s]+)>`__?")
_ELSEWHERE = re.compile(r"^([a-z][a-z0-9+.-]*:|//|#|/|\{|\$|<)", re.IGNORECASE)
_MODULE = re.compile(
    r"(?:^|\s)python[\d.]*\s+-m\s+([A-Za-z_][\w.]*)|^\s*(?:>>>\s*)?from\s+([A-Za-z_][\w.]*)\s+import\s"
    r"|^\s*(?:>>>\s*)?import\s+([A-Za-z_][\w.]*)"
)
_USED_FILE = re.compile(  # a bare name may be the reader's
    r"(?:^|\s)python[\d.]*\s+((?:\./)?[\w.-]+/[\w./-]+\.py)\b|\bpip[\d.]*\s+install\s+(?:\S+\s+)*?-r\s+([\w./-]+)"
)
_MAKE = re.compile(r"^\s*(?:\$\s+)?make\s+([A-Za-z][\w-]*)\s*$")


def agent(ctx: Any) -> Result:
    """What is found about the documentation of the project."""
    return review(ctx, "docs", FILTERS, (check_docstrings, check_pages))


# Which hits of ruff are worth telling.


def _docstring(source: Source, line: int) -> str:
    """The docstring of the function around a line."""
    head = source.function(line)[0] or line
    match = re.search(r'"""(?s:.*?)"""', "\n".join(source.lines[head - 1 : head + MAX_LINES]))
    return match[0] if match else ""


def _is_substantial(source: Source, hit: Hit) -> bool:
    """Whether others may want it, and there is enough in it that a name does not say all."""
    lines = [line for line in source.block(hit.line).splitlines() if line.strip()]
    hook = re.search(r"def pytest_|overload", source.line(hit.line) + source.line(hit.line - 1))
    return source.in_package and not hook and len(lines) >= MIN_LINES


def _is_forgotten(source: Source, hit: Hit) -> bool:
    """One or two parameters that the docstring, which describes the others, does not even mention."""
    names = re.findall(r"`(\*{0,2}\w+)`", hit.message.rpartition(":")[2])
    text = _docstring(source, hit.line)
    return len(names) <= 2 and not any(name[0] == "*" or re.search(rf"\b{name}\b", text) for name in names)


def _is_left_out(source: Source, hit: Hit) -> bool:
    """An exception that a docstring, which lists others, names neither by itself nor by what it is one of."""
    text, match = _docstring(source, hit.line), re.search(r"`(\w+)`", hit.message)
    name, public = match[1] if match else "", not source.function(hit.line)[1].startswith("_")
    if not public or not _RAISES.search(text) or _OWN_WAY.match(name):
        return False
    return not any(re.search(rf"\b{each}\b", text) for each in _ancestors(source, name))


def _ancestors(source: Source, name: str) -> list[str]:
    """An exception and what it is one of, by name, as far as Python or the project says."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type):
        return [each.__name__ for each in kind.__mro__[:-1]]
    texts = [each.text for each in source.project.product if f"class {name}(" in each.text]
    bases = [base for text in texts for base in re.findall(rf"class {name}\(([\w.]+)", text) if base != name]
    return [name, *(each for base in bases for each in _ancestors(source, base.rpartition(".")[2]))]


FILTERS = {
    "missing-docstring": _is_substantial,
    "undocumented-parameter": _is_forgotten,
    "undocumented-exception": _is_left_out,
    "unknown-parameter": lambda source, hit: bool(
        re.match(r"\s*\*{0,2}[a-z_]\w*\s*(\([^)]*\))?\s*:", source.line(hit.line))
    ),
    "empty-docstring": lambda source, hit: not source.has_comment(hit.line - 1, hit.line + 1),
}


# What ruff does not see: parameters as Sphinx has them, and examples.


def check_docstrings(project: Project, _: Tools) -> Iterator[Hit]:
    """Docstrings that speak of what is not there, only hold the place of one, or show what is no Python."""
    for source in project.product:
        for line, match in source.matches(_DOCSTRING):
            text = match["text"]
            if _PLACEHOLDER.fullmatch(text.strip()):
                message = f"This docstring only holds the place of one: {text.strip()[:40]!r}."
                yield Hit("placeholder-docstring", source.name, line, message)
            yield from _broken(source, line, text) if ">>>" in text else ()
            yield from _unknown(source, line, text) if _PARAMETER.search(text) else ()


def _broken(source: Source, line: int, text: str) -> Iterator[Hit]:
    """The first example that is no Python; a layout that doctest does not know is no defect."""
    example = None
    try:
        for example in doctest.DocTestParser().get_examples(text):
            compile(example.source, "", "single", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        at = line + example.lineno if example else line
        yield Hit("broken-example", source.name, at, f"This example is no Python: {error.msg}.")
    except ValueError:
        return


def _unknown(source: Source, line: int, text: str) -> Iterator[Hit]:
    """Parameters that only the docstring knows; a function that takes anything may have any."""
    head, _ = next(source.heads(line), (0, ""))
    try:
        node = ast.parse(dedent(source.block(head))).body[0] if head else None
    except (SyntaxError, ValueError):
        return
    if isinstance(node, ast.ClassDef):
        node = next((each for each in node.body if getattr(each, "name", "") == "__init__"), None)
    decorator = source.line(head - 1).strip()
    if not isinstance(node, FUNCTIONS) or (decorator.startswith("@") and not decorator.endswith(_KEEPING)):
        return
    if node.args.kwarg or node.args.vararg or (node.name.startswith("_") and node.name != "__init__"):
        return
    own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    for match in _PARAMETER.finditer(text):
        if match[1] not in own:
            message = f"The docstring describes `{match[1]}`, which is no parameter of it."
            yield Hit("unknown-parameter", source.name, line + text.count("\n", 0, match.start(1)), message)


# The README and the pages beside it.


def check_pages(project: Project, _: Tools) -> Iterator[Hit]:
    """Everything about the pages of a project."""
    readmes = [path.name for path in sorted(project.root.iterdir()) if _README.match(path.name)][:1]
    if project.sources and not readmes:
        yield Hit("readme-missing", ".", 0, "There is no README: nobody can tell how to begin.")
    folders = [folder for name in ("docs", "doc") if (folder := project.root / name).is_dir()]
    pages = [path for folder in folders for path in all_files(folder) if path.suffix in (".md", ".markdown")]
    for name in [*readmes, *(path.relative_to(project.root).as_posix() for path in pages[:MAX_PAGES])]:
        inside = False
        for number, line in enumerate(project.read(name).splitlines(), start=1):
            if re.match(r"\s*(```|~~~)", line):
                inside = not inside
            elif inside or (name.endswith(".rst") and line.startswith("    ")):
                yield from _commands(project, name, number, line) if name in readmes else ()
            else:
                yield from _dead_links(project, name, number, line)


def _dead_links(project: Project, name: str, number: int, line: str) -> Iterator[Hit]:
    """Links to files that do not exist, counted from the page or from the project.

    In a folder of documentation only links to files are sure: sites made from it have their own addresses.
    """
    targets = (
        _RST_LINK.findall(line) if name.endswith(".rst") else _LINK.findall(re.sub(r"`[^`]*`", "", line))
    )
    for target in (each for each in targets if not _ELSEWHERE.match(each)):
        bare = unquote(re.split(r"[#?]", target)[0])
        paths = (project.root / name).parent / bare, project.root / bare
        sure = bare and (_FILE.search(bare) or not name.startswith("doc"))
        if sure and not any(path.exists() for path in paths):
            yield Hit("dead-link", name, number, f"The link to `{target}` leads to no file.")


def _commands(project: Project, name: str, number: int, line: str) -> Iterator[Hit]:
    """Modules, scripts and targets that the README tells people to use."""
    for module in ("".join(groups) for groups in _MODULE.findall(line)):
        if not _has_module(project, module):
            yield Hit("unknown-module", name, number, f"`{module}` is no module of the project.")
    for file in ("".join(groups) for groups in _USED_FILE.findall(line)):
        if not Path(project.root, file).exists() and "cd " not in line:
            yield Hit("unknown-file", name, number, f"`{file}` is used here; the project has no such file.")
    makefile = project.read("Makefile")
    for target in _MAKE.findall(line) if makefile else ():
        if not re.search(rf"^{re.escape(target)}\b.*:", makefile, re.MULTILINE):
            yield Hit("unknown-target", name, number, f"`make {target}`: the Makefile has no such target.")


def _has_module(project: Project, module: str) -> bool:
    """Whether a module is there, or belongs to others; what a package makes of a name counts too."""
    packaged = [each for each in project.product if (each.path.parent / "__init__.py").exists()]
    if module.partition(".")[0] not in {each.module.partition(".")[0] for each in packaged}:
        return True
    package, _, last = module.rpartition(".")
    named = [each for each in project.sources.values() if each.module == package]
    there = any(f"{each.module}.".startswith(f"{module}.") for each in project.sources.values())
    return there or any(re.search(rf"\b{re.escape(last)}\b", each.text) for each in named)
