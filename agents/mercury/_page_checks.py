"""The README and the pages beside it: whether there is one, and whether what it points to exists."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from _finding import Hit
from _project import Project
from _tools import Tools
from _walk import all_files

MAX_PAGES = 300
_README = re.compile(r"readme(\.(md|markdown|rst|txt))?$", re.IGNORECASE)
_SUFFIXES = frozenset(".md .markdown .rst .txt .py .toml .yaml .yml .png .svg .jpg .gif .ipynb".split())
_LINK = re.compile(r"!?\[[^\]\n]*\]\(<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
_RST_LINK = re.compile(r"`[^`<]+<([^>\s]+)>`__?")
_ELSEWHERE = re.compile(r"^([a-z][a-z0-9+.-]*:|//|#|/|\{|\$|<)", re.IGNORECASE)
_MODULE = re.compile(r"(?:^|\s)python[\d.]*\s+-m\s+([A-Za-z_][\w.]*)")
_IMPORT = re.compile(r"^\s*(?:>>>\s*)?(?:from\s+([A-Za-z_][\w.]*)\s+import\s|import\s+([A-Za-z_][\w.]*))")
_SCRIPT = re.compile(
    r"(?:^|\s)python[\d.]*\s+((?:\./)?[\w.-]+/[\w./-]+\.py)\b"
)  # a bare name may be the reader's
_REQUIREMENTS = re.compile(r"\bpip[\d.]*\s+install\s+(?:\S+\s+)*?-r\s+([\w./-]+)")
_MAKE = re.compile(r"^\s*(?:\$\s+)?make\s+([A-Za-z][\w-]*)\s*$")


def check_pages(project: Project, _: Tools) -> Iterator[Hit]:
    """Everything about the pages of a project."""
    readme = next((path.name for path in sorted(project.root.iterdir()) if _README.match(path.name)), "")
    if readme:
        yield from _commands(project, readme)
    elif project.sources:
        yield Hit(
            "readme-missing", ".", 0, "There is no README: nobody can tell what this is and how to begin."
        )
    for name in [*([readme] if readme else []), *_docs(project)]:
        yield from _dead_links(project, name)


def _docs(project: Project) -> list[str]:
    """Markdown pages below the folder of documentation."""
    folders = [folder for name in ("docs", "doc") if (folder := project.root / name).is_dir()]
    paths = [path for folder in folders for path in all_files(folder) if path.suffix in (".md", ".markdown")]
    return [path.relative_to(project.root).as_posix() for path in paths[:MAX_PAGES]]


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """The lines of a page: number, text, and whether it stands in a fence."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\s*(```|~~~)", line):
            inside = not inside
        else:
            yield number, line, inside


def _dead_links(project: Project, name: str) -> Iterator[Hit]:
    is_rst = name.endswith(".rst")
    for number, line, inside in _lines(project.read(name)):
        targets = _RST_LINK.findall(line) if is_rst else _LINK.findall(re.sub(r"`[^`]*`", "", line))
        for target in targets if not inside else ():
            if not _ELSEWHERE.match(target) and not _exists(project.root, name, target):
                yield Hit(
                    "dead-link", name, number, f"The link to `{target}` leads nowhere: there is no such file."
                )


def _exists(root: Path, page: str, target: str) -> bool:
    """Whether a link leads somewhere, counted from its page.

    In a folder of documentation only links to files are sure: sites are made from it, with addresses of their own.
    """
    bare = unquote(re.split(r"[#?]", target)[0])
    found = not bare or ((root / page).parent / bare).exists() or (root / bare).exists()
    return found or (page.startswith("doc") and Path(bare).suffix not in _SUFFIXES)


def _commands(project: Project, name: str) -> Iterator[Hit]:
    """Modules, scripts and targets that the README tells people to use."""
    makefile = project.read("Makefile")
    for number, line, inside in _lines(project.read(name)):
        if not inside and not (line.startswith("    ") and name.endswith(".rst")):
            continue
        for module in [*_MODULE.findall(line), *(first or second for first, second in _IMPORT.findall(line))]:
            if not _has_module(project, module):
                message = f"`{module}` is used here, and the project has no such module."
                yield Hit("unknown-module", name, number, message)
        for target in [*_SCRIPT.findall(line), *_REQUIREMENTS.findall(line)]:
            if not (project.root / target).exists() and "cd " not in line:
                yield Hit(
                    "unknown-file",
                    name,
                    number,
                    f"The command uses `{target}`, and the project has no such file.",
                )
        for target in _MAKE.findall(line):
            if makefile and not re.search(rf"^{re.escape(target)}\b.*:", makefile, re.MULTILINE):
                yield Hit(
                    "unknown-target",
                    name,
                    number,
                    f"`make {target}` is told here, and the Makefile has no such target.",
                )


def _has_module(project: Project, module: str) -> bool:
    """Whether a module is there, or belongs to others; what a package makes of a name counts too."""
    own = {
        each.module.partition(".")[0]
        for each in project.product
        if (each.path.parent / "__init__.py").exists()
    }
    if module.partition(".")[0] not in own:
        return True
    package, _, last = module.rpartition(".")
    for each in project.sources.values():
        if each.module == module or each.module.startswith(f"{module}."):
            return True
        if each.module == package and re.search(rf"\b{re.escape(last)}\b", each.text):
            return True
    return False


PAGE_CHECKS = (check_pages,)
