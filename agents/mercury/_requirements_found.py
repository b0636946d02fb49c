"""Lists of dependencies: what is there twice, contradicts itself, or is left to chance."""

import re
from collections.abc import Iterator
from typing import Any

from _finding import Hit, Rule
from _manifest import Manifest, Requirement, lowest_python, read_manifest, version_key
from _source import Project

REQUIREMENT_RULES = {
    "no-manifest": Rule("medium", "Add a pyproject.toml with name, requires-python and dependencies."),
    "broken-manifest": Rule("high", "Mend the syntax; no tool can install the project until then."),
    "no-requires-python": Rule(
        "medium", "Add requires-python, so that installers choose a release that works."
    ),
    "unpinned-requirement": Rule("low", "Give each a version, or at least a lowest one."),
    "unpinned-source": Rule("medium", "Name a commit or a tag behind the @."),
    "duplicate-requirement": Rule("low", "Keep one of them."),
    "conflicting-requirement": Rule("high", "Choose versions that can be met together."),
    "impossible-requirement": Rule("high", "Correct the bounds."),
    "backport-of-stdlib": Rule("medium", "Remove it; what it brings is part of Python."),
    "missing-file": Rule("high", "Correct the name, or add the file."),
    "broken-entry-point": Rule("high", "Correct module and function behind the command."),
    "classifier-mismatch": Rule("low", "Remove the classifier, or lower requires-python."),
    "license-twice": Rule("low", "Remove the classifier; `license` says it all."),
    "test-tool-in-dependencies": Rule("medium", "Move it to an optional group such as `test` or `dev`."),
}
_BACKPORTS = frozenset(
    [
        "argparse",
        "asyncio",
        "contextlib2",
        "dataclasses",
        "enum34",
        "futures",
        "functools32",
        "importlib",
        "ipaddress",
        "mock-stdlib",
        "pathlib",
        "pathlib2",
        "statistics",
        "subprocess32",
        "typing",
        "unittest2",
        "uuid",
        "wsgiref",
    ]
)
_TEST_TOOLS = frozenset(
    [
        "pytest",
        "pytest-cov",
        "pytest-mock",
        "pytest-asyncio",
        "pytest-xdist",
        "coverage",
        "tox",
        "nox",
        "black",
        "flake8",
        "isort",
        "mypy",
        "pylint",
        "ruff",
        "pre-commit",
        "twine",
        "hypothesis",
    ]
)
NEVER_IMPORTED = _BACKPORTS | _TEST_TOOLS  # other rules speak of these
_GIT = re.compile(r"(?P<url>git\+\S+|\S+\.git)(?P<rest>@[^#\s]+)?")


def check_manifest(project: Project) -> Iterator[Hit]:
    """Whether there is a manifest, whole, and saying for which Python."""
    manifest = read_manifest(project)
    if not manifest.files:
        if len(project.sources) > 1:
            yield Hit(
                "no-manifest",
                0,
                "Nothing says what this project needs: no pyproject.toml, no requirements.txt.",
                file=".",
            )
        return
    if manifest.broken:
        name, line, why = manifest.broken
        yield Hit("broken-manifest", line, f"`{name}` is not valid: {why}.", file=name)
    dynamic = (manifest.project or {}).get("dynamic", [])
    if manifest.project is not None and not manifest.requires_python and "requires-python" not in dynamic:
        message = "`requires-python` is missing: an older Python installs the project and fails when it runs."
        yield Hit("no-requires-python", _line(project, r"^\[project\]"), message, file="pyproject.toml")


def _line(project: Project, pattern: str) -> int:
    text = project.read("pyproject.toml") or ""
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 0


def check_versions(project: Project) -> Iterator[Hit]:
    """Requirements that any version meets, in lists that are installed as they are."""
    manifest = read_manifest(project)
    for name in manifest.files:
        loose = [each for each in manifest.requirements if each.file == name and _loose(each)]
        if loose:
            names = ", ".join(f"`{each.name}`" for each in loose[:5])
            more = f" and {len(loose) - 5} more" if len(loose) > 5 else ""
            verb = "has" if len(loose) == 1 else "have"
            message = (
                f"{names}{more} {verb} no version: any release is accepted, the oldest and the one of "
                "tomorrow."
            )
            yield Hit("unpinned-requirement", loose[0].line, message, file=name)
    yield from _sources(project, manifest)


def _loose(each: Requirement) -> bool:
    """Whether users get any version; what developers and builds use is their own matter."""
    return (
        not each.clauses and not each.url and each.group == "" and not each.file.endswith("constraints.txt")
    )


def _sources(project: Project, manifest: Manifest) -> Iterator[Hit]:
    for name in manifest.files:
        for number, line in enumerate((project.read(name) or "").splitlines(), start=1):
            match = _GIT.search(line) if "git+" in line and not line.lstrip().startswith("#") else None
            if match and "@" not in match["url"].rpartition("/")[2] and not match["rest"]:
                message = f"`{match['url'][:80]}` names no commit, so it is another thing every day."
                yield Hit("unpinned-source", number, message, file=name)


def check_pairs(project: Project) -> Iterator[Hit]:
    """The same dependency twice in one list, or in ways that cannot both be met."""
    manifest = read_manifest(project)
    seen: dict[tuple[str, str], Requirement] = {}
    for each in manifest.requirements:
        if each.marker or each.group == "build" or "constraints" in each.file:
            continue
        yield from _impossible(each)
        place = each.file if each.group else ""  # other lists are for other environments
        first = seen.setdefault((each.name, place), each)
        if first is each:
            continue
        pinned = _exact(first), _exact(each)
        if all(pinned) and pinned[0] != pinned[1]:
            message = (
                f"`{each.name}` is {pinned[1]} here and {pinned[0]} in {first.file}:{first.line}; both "
                "cannot be met."
            )
            yield Hit("conflicting-requirement", each.line, message, file=each.file)
        elif (first.file, first.group) == (each.file, each.group):
            message = f"`{each.name}` stands on line {first.line} already."
            yield Hit("duplicate-requirement", each.line, message, file=each.file)


def _exact(each: Requirement) -> str:
    return next(
        (version for sign, version in each.clauses if sign in ("==", "===") and "*" not in version), ""
    )


def _impossible(each: Requirement) -> Iterator[Hit]:
    lower = [
        version_key(version)
        for sign, version in each.clauses
        if sign in (">=", ">", "==") and "*" not in version
    ]
    upper = [
        version_key(version) for sign, version in each.clauses if sign in ("<", "==") and "*" not in version
    ]
    at_most = [version_key(version) for sign, version in each.clauses if sign == "<="]
    clash = any(low >= high for low in lower for high in upper if low != high or not _exact(each))
    if clash or any(low > high for low in lower for high in at_most):
        message = f"No version of `{each.name}` is in `{each.text}`."
        yield Hit("impossible-requirement", each.line, message, file=each.file)


def check_kinds(project: Project) -> Iterator[Hit]:
    """Dependencies that users should not get: parts of Python itself, and tools for developers."""
    for each in read_manifest(project).requirements:
        if each.group or each.marker or each.file not in ("pyproject.toml", "requirements.txt", "setup.cfg"):
            continue
        if each.name in _BACKPORTS:
            message = (
                f"`{each.name}` is part of Python; the package of that name is an old copy that may "
                "replace it."
            )
            yield Hit("backport-of-stdlib", each.line, message, file=each.file)
        elif (
            each.name in _TEST_TOOLS and each.file != "requirements.txt" and not _imported(project, each.name)
        ):
            message = (
                f"`{each.name}` is a tool for developers, and everybody who installs the project gets it."
            )
            yield Hit("test-tool-in-dependencies", each.line, message, file=each.file)


def _imported(project: Project, name: str) -> bool:
    word = name.replace("-", "_")
    pattern = re.compile(rf"^\s*(import|from)\s+{re.escape(word)}\b", re.MULTILINE)
    return any(source.is_product and pattern.search(source.text) for source in project.sources)


def check_promises(project: Project) -> Iterator[Hit]:
    """Files, commands and versions that the manifest names and the project does not have."""
    table = read_manifest(project).project or {}
    readme = table.get("readme")
    name = readme.get("file", "") if isinstance(readme, dict) else readme
    if name and not (project.root / str(name)).exists():
        message = f"The readme `{name}` does not exist, so the project cannot be built."
        yield Hit("missing-file", _line(project, r"^readme"), message, file="pyproject.toml")
    for command, target in {**table.get("scripts", {}), **table.get("gui-scripts", {})}.items():
        yield from _entry_point(project, command, str(target))
    yield from _classifiers(project, table)
    yield from _license(project, table)


def _entry_point(project: Project, command: str, target: str) -> Iterator[Hit]:
    module, _, attribute = target.partition(":")
    source = project.by_module.get(module)
    own = module.partition(".")[0] in {each.partition(".")[0] for each in project.by_module}
    first = attribute.split("[")[0].strip().partition(".")[0]
    lacks = (
        source is not None
        and first
        and not re.search(rf"\b{re.escape(first)}\b", source.text)
        and "import *" not in source.text
    )
    if own and (source is None or lacks):
        message = (
            f"The command `{command}` leads to `{target}`, which does not exist; it fails when somebody "
            "runs it."
        )
        yield Hit(
            "broken-entry-point",
            _line(project, rf"^\"?{re.escape(command)}\"?\s*="),
            message,
            file="pyproject.toml",
        )


def _classifiers(project: Project, table: dict[str, Any]) -> Iterator[Hit]:
    lowest = lowest_python(table.get("requires-python"))
    for each in table.get("classifiers", []):
        match = re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", str(each))
        if match and lowest and int(match[1]) < lowest[1]:
            message = f"The classifiers promise Python 3.{match[1]}, and `requires-python` refuses it."
            yield Hit(
                "classifier-mismatch",
                _line(project, rf"Python :: 3\.{match[1]}\b"),
                message,
                file="pyproject.toml",
            )


def _license(project: Project, table: dict[str, Any]) -> Iterator[Hit]:
    """An expression such as `MIT` and a classifier beside it, which are not to stand together (PEP 639)."""
    given = table.get("license")
    classified = [str(each) for each in table.get("classifiers", []) if str(each).startswith("License ::")]
    if isinstance(given, str) and classified:
        message = (
            f"The licence is `{given}` and also a classifier; that one is deprecated, and build tools may "
            "refuse the two together."
        )
        line = _line(project, rf".*{re.escape(classified[0])}")
        yield Hit("license-twice", line, message, file="pyproject.toml")


REQUIREMENT_CHECKS = (check_manifest, check_versions, check_pairs, check_kinds, check_promises)
