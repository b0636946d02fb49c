"""The README and the pages beside it: whether there is one, and whether what it points to exists."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from _finding import Hit, Rule
from _source import Project
from _walk import all_files

README_RULES = {
    "readme-missing": Rule("medium", "Write a page: what it is, how to install it, one example."),
    "dead-link": Rule("medium", "Correct the path, or remove the link."),
    "unknown-module": Rule("medium", "Correct the name, or remove the example."),
    "unknown-file": Rule("medium", "Correct the path, or remove the command."),
    "unknown-target": Rule("medium", "Add the target to the Makefile, or correct the command."),
}
MAX_PAGES = 300
_README = re.compile(r"readme(\.(md|markdown|rst|txt))?$", re.IGNORECASE)
_PAGE = frozenset({".md", ".markdown"})
_SUFFIXES = frozenset(
    {
        ".md",
        ".markdown",
        ".rst",
        ".txt",
        ".py",
        ".toml",
        ".yaml",
        ".yml",
        ".png",
        ".svg",
        ".jpg",
        ".gif",
        ".ipynb",
    }
)
_LINK = re.compile(r"!?\[[^\]\n]*\]\(<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
_RST_LINK = re.compile(r"`[^`<]+<([^>\s]+)>`__?")
_ELSEWHERE = re.compile(r"^([a-z][a-z0-9+.-]*:|//|#|/|\{|\$|<)", re.IGNORECASE)
_FENCE = re.compile(r"^\s*(```|~~~)")
_MODULE = re.compile(r"(?:^|\s)python[\d.]*\s+-m\s+([A-Za-z_][\w.]*)")
_IMPORT = re.compile(r"^\s*(?:>>>\s*)?(?:from\s+([A-Za-z_][\w.]*)\s+import\s|import\s+([A-Za-z_][\w.]*))")
_SCRIPT = re.compile(
    r"(?:^|\s)python[\d.]*\s+((?:\./)?[\w.-]+/[\w./-]+\.py)\b"
)  # a bare name may be the reader's
_REQUIREMENTS = re.compile(r"\bpip[\d.]*\s+install\s+(?:\S+\s+)*?-r\s+([\w./-]+)")
_MAKE = re.compile(r"^\s*(?:\$\s+)?make\s+([A-Za-z][\w-]*)\s*$")


def check_pages(project: Project) -> Iterator[Hit]:
    """Everything about the pages of a project."""
    readme = next((path.name for path in sorted(project.root.iterdir()) if _README.match(path.name)), None)
    if readme is None:
        if project.sources and not project.root.is_file():
            yield Hit(
                "readme-missing",
                0,
                "There is no README: nobody can tell what this is and how to begin.",
                file=".",
            )
    else:
        yield from _commands(project, readme)
    for name in [*([readme] if readme else []), *_docs(project)]:
        yield from _dead_links(project, name)


def _docs(project: Project) -> list[str]:
    """Markdown pages below the folder of documentation."""
    pages: list[str] = []
    for folder in ("docs", "doc"):
        if (project.root / folder).is_dir():
            paths = [path for path in all_files(project.root / folder) if path.suffix in _PAGE]
            pages += [path.relative_to(project.root).as_posix() for path in paths]
    return pages[:MAX_PAGES]


def lines_of(text: str) -> Iterator[tuple[int, str, bool]]:
    """The lines of a page: number, text, and whether it stands in a fence."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if _FENCE.match(line):
            inside = not inside
        else:
            yield number, line, inside


def _dead_links(project: Project, name: str) -> Iterator[Hit]:
    text = project.read(name) or ""
    pattern = _RST_LINK if name.endswith(".rst") else _LINK
    for number, line, inside in lines_of(text):
        for target in (
            pattern.findall(re.sub(r"`[^`]*`", "", line) if pattern is _LINK else line) if not inside else ()
        ):
            if not _ELSEWHERE.match(target) and not _exists(project.root, name, target):
                message = f"The link to `{target}` leads nowhere: there is no such file."
                yield Hit("dead-link", number, message, file=name)


def _exists(root: Path, page: str, target: str) -> bool:
    """Whether a link leads somewhere, counted from its page.

    In a folder of documentation only links to files are sure: sites are made from it, with addresses of
    their own.
    """
    bare = unquote(re.split(r"[#?]", target)[0])
    path = (root / page).parent / bare
    if not bare or path.exists() or (root / bare).exists():
        return True
    return (
        page.startswith("doc") and Path(bare).suffix not in _SUFFIXES
    )  # a page's address or a reference by name


def _commands(project: Project, name: str) -> Iterator[Hit]:
    """Modules, scripts and targets that the README tells people to use."""
    packages = {source.module.partition(".")[0] for source in project.sources if _importable(source.path)}
    for number, line, inside in lines_of(project.read(name) or ""):
        indented = line.startswith("    ") and name.endswith(".rst")
        if inside or indented:
            yield from _modules(project, packages, name, number, line)
            yield from _files(project, name, number, line)


def _importable(path: Path) -> bool:
    return (path.parent / "__init__.py").exists()


def _modules(project: Project, packages: set[str], name: str, number: int, line: str) -> Iterator[Hit]:
    found = [*_MODULE.findall(line), *(first or second for first, second in _IMPORT.findall(line))]
    for module in found:
        own = module.partition(".")[0] in packages
        if own and not _has_module(project, module):
            message = f"`{module}` is used here, and the project has no such module."
            yield Hit("unknown-module", number, message, file=name)


def _has_module(project: Project, module: str) -> bool:
    """Whether a module is there; compiled ones and folders without `__init__.py` count too."""
    if any(each == module or each.startswith(f"{module}.") for each in project.by_module):
        return True
    package, _, last = module.rpartition(".")
    source = project.by_module.get(package)
    return source is not None and re.search(rf"\b{re.escape(last)}\b", source.text) is not None


def _files(project: Project, name: str, number: int, line: str) -> Iterator[Hit]:
    for target in [*_SCRIPT.findall(line), *_REQUIREMENTS.findall(line)]:
        if not (project.root / target).exists() and "cd " not in line:
            message = f"The command uses `{target}`, and the project has no such file."
            yield Hit("unknown-file", number, message, file=name)
    makefile = project.read("Makefile")
    for target in _MAKE.findall(line):
        if makefile is not None and not re.search(rf"^{re.escape(target)}\b.*:", makefile, re.MULTILINE):
            message = f"`make {target}` is told here, and the Makefile has no such target."
            yield Hit("unknown-target", number, message, file=name)


README_CHECKS = (check_pages,)
