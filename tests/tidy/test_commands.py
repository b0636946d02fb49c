"""Every command a page tells people to type exists."""

import importlib
import re
from collections.abc import Iterator

import pytest

from tests.tidy.project import ROOT, code_blocks, markdown_files, name_of, pyproject

SHELLS = {"sh", "bash", "console", "shell"}

# Options before the command take no part in finding it; these are followed by a value.
_OPTIONS_WITH_VALUE = {"--store"}


def shell_lines(page: str) -> Iterator[str]:
    """The commands in a page's shell blocks, one at a time, without prompt and comment."""
    for language, body in code_blocks(page):
        if language in SHELLS:
            for line in body.replace("\\\n", " ").splitlines():
                if language == "console" and not line.startswith("$ "):
                    continue  # what a command printed
                for command in re.split(r"&&|\||;", line.removeprefix("$ ").partition(" #")[0]):
                    yield command.strip()


def command_word(line: str) -> str | None:
    """The command in `orchestra [options] COMMAND …`, if that is what the line is."""
    words = iter(line.split()[1:])
    for word in words:
        if word in _OPTIONS_WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _commands() -> list[tuple[str, str]]:
    return [
        (name_of(path), line)
        for path in markdown_files()
        for line in shell_lines(path.read_text(encoding="utf-8"))
    ]


def test_orchestra_commands_exist() -> None:
    catalog = importlib.import_module("orchestra.cli.catalog")
    known = {command.name.split()[0] for command in catalog.COMMANDS if not command.hidden}
    typed = [(page, command_word(line)) for page, line in _commands() if line.split()[:1] == ["orchestra"]]
    assert any(page == "README.md" for page, _ in typed)
    assert [(page, word) for page, word in typed if word and word not in known] == []


def test_modules_run_with_python_exist() -> None:
    missing = []
    for page, line in _commands():
        if match := re.match(r"python3? -m (?P<module>(benchmarks|orchestra|tests)[\w.]*)", line):
            place = ROOT / match["module"].replace(".", "/")
            if not place.with_suffix(".py").exists() and not (place / "__main__.py").exists():
                missing.append((page, line))
    assert missing == []


def test_extras_exist() -> None:
    known = set(pyproject()["project"]["optional-dependencies"])
    asked = {
        (page, extra)
        for page, line in _commands()
        for extras in re.findall(r"\.\[([\w,]+)\]", line)
        for extra in extras.split(",")
    }
    assert asked
    assert {(page, extra) for page, extra in asked if extra not in known} == set()


def test_nothing_of_this_name_is_fetched_from_an_index() -> None:
    """What an index has under this name may be somebody else's: this project is installed from its folder."""
    sources = [*markdown_files(), *(ROOT / "orchestra").rglob("*.py")]
    told = [path for path in sources if re.search(r"pip install\W+orchestra\b", path.read_text("utf-8"))]
    assert [name_of(path) for path in told] == []


def test_the_readme_says_how_to_test_and_ci_does_so() -> None:
    lines = [line for page, line in _commands() if page == "README.md"]
    assert "pytest" in lines
    ci = ROOT / ".ci" / "run"
    assert 'step "tests" pytest\n' in ci.read_text()
    assert ci.stat().st_mode & 0o111, ".ci/run must be executable"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("orchestra runs --json", "runs"),
        ("orchestra --help", None),
        ("orchestra --store sqlite:x.db show RUN@head", "show"),
    ],
)
def test_the_command_word_is_found(line: str, word: str | None) -> None:
    assert command_word(line) == word


def test_shell_lines_are_taken_apart() -> None:
    page = "```sh\npip install -e . && orchestra runs  # list\n```\n"
    page += "```console\n$ orchestra show x\nfigures\n```\n```python\nimport orchestra\n```\n"
    assert list(shell_lines(page)) == ["pip install -e .", "orchestra runs", "orchestra show x"]
