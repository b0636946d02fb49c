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


def check_pages(project: Project, _: Tools) -> Iterator[Hit]:
    """Everything about the pages of a project."""
    readmes = [path.name for path in sorted(project.root.iterdir()) if _README.match(path.name)][:1]
    if project.sources and not readmes:
        yield Hit(
            "readme-missing", ".", 0, "There is no README: nobody can tell what this is and how to begin."
        )
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

    In a folder of documentation only links to files are sure: sites are made from it, with addresses of their own.
    """
    targets = (
        _RST_LINK.findall(line) if name.endswith(".rst") else _LINK.findall(re.sub(r"`[^`]*`", "", line))
    )
    for target in (each for each in targets if not _ELSEWHERE.match(each)):
        bare = unquote(re.split(r"[#?]", target)[0])
        paths = (project.root / name).parent / bare, project.root / bare
        sure = bare and (_FILE.search(bare) or not name.startswith("doc"))
        if sure and not any(path.exists() for path in paths):
            yield Hit(
                "dead-link", name, number, f"The link to `{target}` leads nowhere: there is no such file."
            )


def _commands(project: Project, name: str, number: int, line: str) -> Iterator[Hit]:
    """Modules, scripts and targets that the README tells people to use."""
    for module in ("".join(groups) for groups in _MODULE.findall(line)):
        if not _has_module(project, module):
            yield Hit(
                "unknown-module", name, number, f"`{module}` is used here; the project has no such module."
            )
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
