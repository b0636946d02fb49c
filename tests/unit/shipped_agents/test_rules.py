"""Single rules, with the cases that are easily got wrong. The planted project has the plain ones."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.unit.shipped_agents.review import AGENTS, KINDS, ROOT, findings, load, made, rules, surveyed

STATEMENTS = "\n".join(
    f"    value_{number} = call({number})\n    use(value_{number})" for number in range(60)
)
BRANCHES = "\n".join(f"    if x == {number}:\n        return {number}" for number in range(25))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(:\n", ["syntax-error"]),
        ("x = 1\0\n", ["syntax-error"]),
        ("x = '\\d'\n", ["invalid-escape"]),
        ("x = r'\\d'\n", []),
        (f"def f():\n{STATEMENTS}\n", ["long-function"]),
        (f"def f(x):\n{BRANCHES}\n", ["complex-function"]),
        ("from os import *\n", ["star-import"]),
        ("import os\n__all__ = ['os']\n", []),
        ("import os  # noqa: F401\n", []),
        ("import os as os\n", []),
        ("from typing import List\nx: 'List[int]'\n", []),
        ("try:\n    import os\nexcept ImportError:\n    os = None\n", []),
        ("assert (1 == 2, 'no')\n", ["assert-tuple"]),
        ("x = open('a', encoding='utf-8').read()\n", ["unclosed-file"]),
        ("with open('a') as file:\n    file.read()\n", ["missing-encoding"]),
        ("with open('a', 'rb') as file:\n    file.read()\n", []),
        ("def f(x):\n    return x == None\n", ["none-comparison"]),
        ("def f(x=[]):\n    return len(x)\n", []),
        ("def f():\n    return\n    yield\n", []),
        ("def f(id, type):\n    return id, type\n", []),
        ("x = 'a'.strip('xyz')\n", []),
        ("def f():\n    _unused = call()\n", []),
        ("def f():\n    total = 0\n    total += 1\n", []),
        ("async def f():\n    return f\n\nasync def g():\n    await f()\n", []),
        ("if a:\n    b()\nelif c:\n    b()\n", []),
    ],
)
def test_structure(tmp_path: Path, source: str, expected: list[str]) -> None:
    found = rules(made(tmp_path, {"pack/__init__.py": "", "pack/module.py": source}), "structure")
    assert [
        rule for rule in found if rule != "undefined-name"
    ] == expected  # names that are only there to be read


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import ast\nx = ast.literal_eval(text)\n", []),
        ("eval('1 + 1')\n", []),
        ("exec(compile(text, 'x', 'exec'))\n", []),
        ("from pickle import loads as read\nread(data)\n", ["unsafe-load"]),
        ("import pickle\npickle.loads(pickle.dumps(data))\n", []),
        ("import subprocess\nsubprocess.run('ls', shell=True)\n", []),
        ("import subprocess\nsubprocess.run(command, shell=True)\n", ["shell-injection"]),
        ("password = 'changeme-123'\n", []),
        ("PASSWORD_FIELD = 'password-1'\n", []),
        ("key = 'AKIAIOSFODNN7ABCDEFG'\n", ["hard-coded-secret"]),
        ("db.execute('SELECT a FROM b WHERE c = %s' % c)\n", ["sql-injection"]),
        ("db.execute('SELECT a FROM b WHERE c = ?', (c,))\n", []),
        ("def f(c):\n    query = f'DELETE FROM b WHERE c = {c}'\n    db.execute(query)\n", ["sql-injection"]),
        ("import hashlib\ndef etag(data):\n    return hashlib.md5(data)\n", []),
        ("import random\ndef jitter():\n    return random.random()\n", []),
        ("import ssl\nssl._create_unverified_context()\n", ["tls-not-verified"]),
        (
            "from paramiko import client as p\nc = p.SSHClient()\n"
            "c.set_missing_host_key_policy(p.AutoAddPolicy)\n",
            ["unknown-host-key"],
        ),
        ("from markupsafe import Markup\nMarkup(f'<b>{name}</b>')\n", ["unescaped-html"]),
        ("import hmac\nok = hmac.new(k, m, 'sha256').hexdigest() == given\n", ["timing-comparison"]),
        ("eval(text)  # nosec\n", []),
    ],
)
def test_security(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert rules(made(tmp_path, {"pack/__init__.py": "", "pack/module.py": source}), "security") == expected


def test_tests_may_do_what_is_dangerous(tmp_path: Path) -> None:
    assert (
        rules(made(tmp_path, {"tests/test_x.py": "def test_x():\n    assert eval(text)\n"}), "security") == []
    )


MODULE = '"""A."""\ndef one(x):\n    """B."""\n    return x\n\ndef two(x):\n    """C."""\n    return x\n'


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("from pack import module\ndef test_x():\n    assert module.one(1)\n", []),
        ("def test_x():\n    assert 1 == len('a')\n", ["untested-module"]),
        ("import importlib\ndef test_x():\n    assert importlib.import_module('pack.module')\n", []),
        ("import importlib\ndef test_x(n):\n    assert importlib.import_module(f'pack.{n}')\n", []),
    ],
)
def test_reach(tmp_path: Path, test: str, expected: list[str]) -> None:
    files = {"pack/__init__.py": "", "pack/module.py": MODULE, "tests/test_x.py": test}
    assert rules(made(tmp_path, files), "tests") == expected


def test_a_project_without_tests(tmp_path: Path) -> None:
    assert rules(made(tmp_path, {"pack/__init__.py": "", "pack/module.py": MODULE}), "tests") == ["no-tests"]


def test_a_project_without_pages(tmp_path: Path) -> None:
    assert rules(made(tmp_path, {"a.py": "", "b.py": ""}), "docs", "dependencies") == [
        "no-manifest",
        "readme-missing",
    ]


@pytest.mark.parametrize(
    ("manifest", "source", "expected"),
    [
        ("[project\n", "", ["broken-manifest"]),
        ("[project]\nname='a'\nrequires-python='>=3.9'\n", "import tomllib\n", ["newer-module"]),
        (
            "[project]\nname='a'\nrequires-python='>=3.9'\n",
            "match x:\n    case 1:\n        pass\n",
            ["newer-syntax"],
        ),
        ("[project]\nname='a'\nrequires-python='>=3.11'\n", "import tomllib\n", []),
        ("[project]\nname='a'\nrequires-python='>=3.11'\n", "import PIL\n", ["undeclared-import"]),
        ("[project]\nname='a'\nrequires-python='>=3.11'\ndependencies=['pillow>=1']\n", "import PIL\n", []),
        ("[project]\nname='a'\nrequires-python='>=3.11'\n", "def f():\n    import numpy\n", []),
        ("[project]\nname='a'\nrequires-python='>=3.11'\n", "import imp\n", ["removed-module"]),
        ("[project]\nname='a'\nrequires-python='>=3.8,<3.12'\n", "import imp\n", []),
        (
            "[project]\nname='a'\nrequires-python='>=3.11'\n"
            "classifiers=['Programming Language :: Python :: 3.8']\n",
            "",
            ["classifier-mismatch"],
        ),
    ],
)
def test_dependencies(tmp_path: Path, manifest: str, source: str, expected: list[str]) -> None:
    files = {"pyproject.toml": manifest, "pack/__init__.py": "", "pack/module.py": source}
    assert rules(made(tmp_path, files), "dependencies") == expected


def test_lists_for_different_environments_may_differ(tmp_path: Path) -> None:
    files = {"requirements/a.txt": "x==1\n", "requirements/b.txt": "x==2\n", "a.py": ""}
    assert rules(made(tmp_path, files), "dependencies") == []


def test_every_rule_is_described() -> None:
    page = (ROOT / "docs" / "how-to" / "review-your-project.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w-]+)` \| (low|medium|high) \|", page, re.MULTILINE))
    tables = tomllib.loads((AGENTS / "mercury" / "rules.toml").read_text(encoding="utf-8"))
    assert listed == {(name, rule["severity"]) for kind in KINDS for name, rule in tables[kind].items()}


def test_ruff_knows_every_code() -> None:
    tables = tomllib.loads((AGENTS / "mercury" / "rules.toml").read_text(encoding="utf-8"))
    codes = {
        code for table in tables.values() for rule in table.values() for code in rule.get("ruff", "").split()
    }
    told = subprocess.run(
        [sys.executable, "-m", "ruff", "rule", "--all", "--output-format=json"],
        capture_output=True,
        check=True,
    )
    known = {rule["code"] for rule in json.loads(told.stdout) if "Removed" not in str(rule["status"])}
    assert codes - known == {"invalid-syntax"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(x, known={}):\n    return known.get(x)\n", []),
        ("def f(x, known={}):\n    known[x] = 1\n", ["mutable-default"]),
        (
            "class A:\n    def _f(self, a, b):\n        return a\n\n"
            "    def g(self):\n        return self._f(1, 2)\n",
            ["unused-parameter"],
        ),
        ("def _f(a, b):\n    return a\n\n\nx = map(_f, [1], [2])\n", []),
        ("def f(a):\n    assert a > 0\n    return a\n", ["assert-on-argument"]),
        ("def f(a):\n    assert isinstance(a, int)\n    return a\n", []),
        ("def f(a):\n    a = abs(a)\n    assert a > 0\n    return a\n", []),
        (
            "import warnings\n\n\ndef f():\n    warnings.warn('x is deprecated')\n",
            ["warning-without-stacklevel"],
        ),
        ("import warnings\n\n\ndef f():\n    warnings.warn('the clock is wrong', RuntimeWarning)\n", []),
        ("from typing import _GenericAlias\nx = _GenericAlias\n", ["private-api"]),
        ("from pack import _own\nx = _own\n", []),
        (
            "def f(x):\n    try:\n        x()\n    except Exception:\n        pass  # it is only for show\n",
            [],
        ),
        ("def f(x):\n    try:\n        x()\n    except:\n        raise\n", []),
        ("class A:\n    def _f(self):\n        return 1\n", ["unused-private"]),
        ("class A:\n    def _do_x(self, k):\n        return getattr(self, f'_do_{k}')\n", []),
        ("def f(x):\n    print('%s %s' % (x,))\n", ["wrong-format"]),
        ("def f():\n    breakpoint()\n", ["debugger-left"]),
        ("x = 1\n" * 1_001, ["long-file"]),
        ("x = 1\n" * 900 + '"""Words."""\n# more\n\n' * 200, []),
        (
            "try:\n    x = 1\nexcept Exception:\n    x = 2\nexcept ValueError:\n    x = 3\n",
            ["unreachable-except"],
        ),
        (
            "def f(x):\n    if x:\n        y = 1\n    else:\n        y = 1\n    return y\n",
            ["identical-branches"],
        ),
        ("async def f():\n    return 1\n\n\nasync def g():\n    return [\n        f(),\n    ]\n", []),
        ("async def f():\n    return 1\n\n\nasync def g():\n    f()\n", ["missing-await"]),
        ("async def f():\n    yield 1\n\n\nasync def g():\n    f()\n", []),
        ("def f(x):\n    return [x.a for x.a in x]\n" + "x = 1\nx = x\n", ["certain-mistake"]),
    ],
)
def test_hits_of_ruff_that_are_worth_telling(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert rules(made(tmp_path, {"pack/__init__.py": "", "pack/module.py": source}), "structure") == expected


COVERED = {"summary": {"covered_lines": 0, "num_statements": 12}}
BARELY = {"summary": {"covered_lines": 3, "num_statements": 12}}
XML = """<coverage><sources><source>{root}</source></sources><packages><package><classes>
<class filename="pack/module.py"><lines>{lines}</lines></class></classes></package></packages></coverage>"""


@pytest.mark.parametrize("form", ["coverage.json", "coverage.xml", ".coverage"])
def test_a_coverage_file_says_what_the_tests_ran(tmp_path: Path, form: str) -> None:
    body = "".join(f"    x{number} = {number}\n" for number in range(12))
    files = {
        "pack/__init__.py": "",
        "pack/module.py": body.replace("    ", ""),
        "pack/other.py": f"if 1:\n{body}",
    }
    made(
        tmp_path,
        {**files, "tests/test_x.py": "from pack import module, other\n\n\ndef test_x():\n    assert other\n"},
    )
    if form == "coverage.json":
        made(tmp_path, {form: json.dumps({"files": {"pack/module.py": COVERED, "pack/other.py": BARELY}})})
    elif form == "coverage.xml":
        lines = "".join(f'<line number="{number}" hits="0"/>' for number in range(12))
        made(tmp_path, {form: XML.format(root=tmp_path, lines=lines)})
    else:
        made(tmp_path, {"run.py": "import pack.other"})
        command = [sys.executable, "-m", "coverage", "run", "--source=pack", "run.py"]
        subprocess.run(command, cwd=tmp_path, check=True)
    found = findings(tmp_path, "tests")
    assert ("untested-module", "pack/module.py") in {(each["rule"], each["file"]) for each in found}
    assert "pack/other.py" not in {each["file"] for each in found if each["rule"] == "untested-module"}


def test_a_coverage_file_that_is_older_than_a_source_is_not_believed(tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "",
        "pack/module.py": MODULE,
        "tests/test_x.py": "from pack import module\ndef test_x():\n    assert module\n",
    }
    made(tmp_path, {**files, "coverage.json": json.dumps({"files": {"pack/module.py": COVERED}})})
    assert rules(tmp_path, "tests") == ["untested-module"]
    os.utime(tmp_path / "coverage.json", (1, 1))
    assert rules(tmp_path, "tests") == []


def test_a_coverage_file_that_is_none(tmp_path: Path) -> None:
    made(
        tmp_path,
        {"pack/__init__.py": "", "pack/m.py": MODULE, "tests/test_x.py": "def test_x():\n    assert 1\n"},
    )
    said = surveyed(made(tmp_path, {"coverage.json": "{}"}))
    found = load("mercury/tests").agent(said).output
    assert [each["message"] for each in found] == [
        "`coverage.json` is no coverage file: 'files'. What it looks for was not looked for."
    ]
