"""Single rules, with the cases that are easily got wrong. The planted project has the plain ones."""

import re
from pathlib import Path

import pytest

from tests.unit.agents.cast import KINDS, ROOT, load, made, rules

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
    assert rules(made(tmp_path, {"pack/__init__.py": "", "pack/module.py": source}), "structure") == expected


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
        ("import ssl\nif not verify:\n    context.verify_mode = ssl.CERT_NONE\n", []),
        ("import ssl\ncontext.verify_mode = ssl.CERT_NONE\n", ["tls-not-verified"]),
        ("client.set_missing_host_key_policy(paramiko.AutoAddPolicy())\n", ["unknown-host-key"]),
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


def test_tests_declare_what_they_import(tmp_path: Path) -> None:
    manifest = (
        "[project]\nname='a'\nrequires-python='>=3.11'\n[project.optional-dependencies]\ntest=['pytest>=8']\n"
    )
    files = {"pyproject.toml": manifest, "tests/test_x.py": "import pytest\nimport trustme\n"}
    assert rules(made(tmp_path, files), "dependencies") == ["undeclared-test-import"]


def test_lists_for_different_environments_may_differ(tmp_path: Path) -> None:
    files = {"requirements/a.txt": "x==1\n", "requirements/b.txt": "x==2\n", "a.py": ""}
    assert rules(made(tmp_path, files), "dependencies") == []


def test_every_rule_is_described() -> None:
    page = (ROOT / "docs" / "how-to" / "review-your-project.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w-]+)` \| (low|medium|high) \|", page, re.MULTILINE))
    known = {(name, rule.severity) for kind in KINDS for name, rule in load(f"mercury/{kind}").RULES.items()}
    assert listed == known
