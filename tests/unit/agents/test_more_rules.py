"""Rules about callers, copies and gaps in documentation, with the cases that are easily got wrong."""

from pathlib import Path

import pytest

from tests.unit.agents.cast import findings, made, rules

ELEVEN = ", ".join(f"p{number}" for number in range(11))
USED = " + ".join(f"p{number}" for number in range(11))
VALUE = (
    "class A:\n    def __init__(self, x):\n        self.x = x\n"
    "    def __eq__(self, o):\n        return self.x == o.x\n"
)


def structure(folder: Path, source: str) -> list[str]:
    return rules(made(folder, {"pack/__init__.py": "", "pack/module.py": source}), "structure")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"def f({ELEVEN}):\n    return {USED}\n", ["many-positional"]),
        (f"def f(p0, *, {ELEVEN.removeprefix('p0, ')}):\n    return {USED}\n", []),
        (f"@command\ndef f({ELEVEN}):\n    return {USED}\n", []),
        (f"class A:\n    def f(self, {ELEVEN.removesuffix(', p10')}):\n        return p0\n", []),
        (f"def _f({ELEVEN}):\n    return {USED}\n\nx = _f(p0=1, p1=2)\n", []),
        (f"def _f({ELEVEN}):\n    return {USED}\n\nx = _f(1, 2, 3, 4, 5, 6)\n", ["many-positional"]),
    ],
)
def test_positions(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert structure(tmp_path, source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def _f(a, b):\n    return a\n\nx = _f(1, 2)\n", ["unused-parameter"]),
        ("def f(a, b):\n    return a\n\nx = f(1, 2)\n", []),
        ("def _f(a, _b):\n    return a\n\nx = _f(1, 2)\n", []),
        ("def _f(a, b):\n    return a\n\nx = map(_f, y, z)\n", []),
        ("def _f(a, b):\n    return locals()\n\nx = _f(1, 2)\n", []),
        ("def _f(a, b):\n    raise NotImplementedError\n\nx = _f(1, 2)\n", []),
        ("def _f(a, b):\n    return lambda: a + b\n\nx = _f(1, 2)\n", []),
    ],
)
def test_parameters(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert structure(tmp_path, source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (VALUE, ["eq-without-hash"]),
        (VALUE + "    __hash__ = None\n", []),
        (VALUE + "    def set(self, x):\n        self.x = x\n", []),
        (VALUE + "    def add(self, x):\n        self.x.append(x)\n", []),
        (VALUE.replace("class A:", "class A(dict):"), []),
        ("@dataclass\n" + VALUE, []),
    ],
)
def test_equality(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert structure(tmp_path, source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a):\n    assert a > 0\n    return a\n", ["assert-on-argument"]),
        (
            "def f(a):\n    assert a is not None and a > 0, 'too small'\n    return a\n",
            ["assert-on-argument"],
        ),
        ("class A:\n    def __init__(self, a):\n        assert a\n", ["assert-on-argument"]),
        ("def _f(a):\n    assert a > 0\n    return a\n\nx = _f(1)\n", []),
        ("def f(a):\n    assert isinstance(a, int)\n    return a\n", []),
        ("def f(a):\n    assert a.ready\n    return a\n", []),
        ("def f(a):\n    a = g(a)\n    assert a > 0\n    return a\n", []),
        ("def f(a):\n    b = g(a)\n    assert a > b\n    return a\n", []),
        ("def f(a):\n    assert a > 0, 'BUG: checked above'\n    return a\n", []),
    ],
)
def test_asserts(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert structure(tmp_path, source) == expected


def test_asserts_of_private_modules_count_where_they_are_handed_on(tmp_path: Path) -> None:
    source = "def f(a):\n    assert a > 0\n    return a\n\ndef g(a):\n    assert a > 0\n    return a\n"
    files = {"pack/__init__.py": "from pack._inner import f as f\n", "pack/_inner.py": source}
    found = findings(made(tmp_path, files), "structure")
    assert [(each["rule"], each["line"]) for each in found] == [("assert-on-argument", 2)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("warnings.warn('x is deprecated')", ["warning-without-stacklevel"]),
        ("warnings.warn('x', DeprecationWarning)", ["warning-without-stacklevel"]),
        ("warnings.warn('x', DeprecationWarning, 2)", []),
        ("warnings.warn('x', DeprecationWarning, stacklevel=2)", []),
        ("warnings.warn('x is deprecated', **options)", []),
        ("warnings.warn('the clock is wrong', RuntimeWarning)", []),
    ],
)
def test_warnings(tmp_path: Path, call: str, expected: list[str]) -> None:
    assert structure(tmp_path, f"import warnings\n\ndef f():\n    {call}\n") == expected


def test_many_warnings_are_one_finding(tmp_path: Path) -> None:
    source = "import warnings\n\ndef f():\n" + "    warnings.warn('x is deprecated')\n" * 3
    found = findings(made(tmp_path, {"pack/__init__.py": "", "pack/module.py": source}), "structure")
    assert [each["line"] for each in found] == [4]
    assert "(3 times in this file)" in found[0]["message"]


def test_a_warning_whose_words_stand_above(tmp_path: Path) -> None:
    source = "import warnings\n\ndef f():\n    text = 'x is deprecated'\n    warnings.warn(text)\n"
    assert structure(tmp_path, source) == ["warning-without-stacklevel"]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("raise KeyError(x)", ["raise-without-from"]),
        ("raise KeyError", ["raise-without-from"]),
        ("raise KeyError(x) from error", []),
        ("raise KeyError(x) from None", []),
        ("raise", []),
        ("raise error", []),
        ("raise error.with_traceback(None)", []),
        ("raise StopIteration", []),
        ("return lambda: x", []),
        ("raise KeyError(x)  # noqa: B904", []),
    ],
)
def test_causes(tmp_path: Path, statement: str, expected: list[str]) -> None:
    source = (
        f"def f(x):\n    try:\n        return x()\n    except ValueError as error:\n        {statement}\n"
    )
    assert structure(tmp_path, source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from typing import _GenericAlias\nx = _GenericAlias\n", ["private-api"]),
        ("import _pytest.scope\nx = _pytest.scope\n", ["private-api"]),
        ("import trio\nx = trio.Cancelled._create()\n", ["private-api"]),
        ("import trio\ndef f(x: trio._Inner):\n    return x\n", []),
        ("import trio\ndef f(trio):\n    return trio._inner\n", []),
        ("try:\n    from typing import _GenericAlias\nexcept ImportError:\n    _GenericAlias = None\n", []),
        ("import sys\nx = sys._getframe()\n", []),
        ("import _thread\nx = _thread\n", []),
        ("import ast\nx = ast.AST._fields\n", []),
        ("from pack import _own\nx = _own._name\n", []),
        ("from typing import __doc__\nx = __doc__\n", []),
    ],
)
def test_private_parts_of_others(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert structure(tmp_path, source) == expected


@pytest.mark.parametrize(
    ("comments", "expected"),
    [
        (["# type: ignore"] * 5, ["blanket-ignore"]),
        (["# type: ignore"] * 3 + ["# noqa"] * 2, ["blanket-ignore"]),
        (["# type: ignore"] * 4, []),
        (["# type: ignore[misc]"] * 5, []),
        (["# noqa: F401"] * 5, []),
    ],
)
def test_silenced_checkers(tmp_path: Path, comments: list[str], expected: list[str]) -> None:
    lines = "".join(f"x{number} = {number}  {comment}\n" for number, comment in enumerate(comments))
    assert structure(tmp_path, lines) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# to be removed in 1.5", ["overdue-removal"]),
        ("# to be removed in version 2.0", ["overdue-removal"]),
        ("# to be removed in 2.1", []),
        ("# removed in 1.5", []),
        ("# will be removed in Python 1.5", []),
        ("x = 'will be removed in or after August 2001'", ["overdue-removal"]),
        ("# removal on or after 2001-06-01", ["overdue-removal"]),
        ("# removal in 2001", ["overdue-removal"]),
        ("# removal in 2999", []),
        ("'''Will be removed in 1.5.'''", []),
    ],
)
def test_overdue(tmp_path: Path, line: str, expected: list[str]) -> None:
    made(tmp_path, {"pyproject.toml": "[project]\nname = 'pack'\nversion = '2.0'\n"})
    assert structure(tmp_path, f"{line}\n") == expected


PLAIN = (
    "def f{n}(x):\n    a = x.read()\n    b = x.tell()\n    if a:\n        b += 1\n"
    "    c = a + b\n    return c + {n}\n"
)
WAITED = (
    PLAIN.replace("def f", "async def g").replace("x.read", "await x.aread").replace("x.tell", "await x.tell")
)


@pytest.mark.parametrize(("twins", "expected"), [(3, ["async-twins"]), (2, [])])
def test_twins(tmp_path: Path, twins: int, expected: list[str]) -> None:
    source = "".join(PLAIN.format(n=n) + WAITED.format(n=n if n < twins else n + 9) for n in range(3))
    assert structure(tmp_path, source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class A:\n    def _f(self):\n        return 1\n", ["unused-private"]),
        ("class A:\n    def _f(self):\n        return self._f\n", []),
        ("class A:\n    @hook\n    def _f(self):\n        return 1\n", []),
        ("_LIMIT = 3\n", ["unused-private"]),
        ("_LIMIT: int = 3\n", ["unused-private"]),
        ("LIMIT = 3\n", []),
        ("_ = 3\n", []),
        ("_Old = New\n", []),
        ("class A:\n    def _do_x(self, k):\n        return getattr(self, f'_do_{k}')\n", []),
        ("class A:\n    def _do_x(self, k):\n        return getattr(self, '_do_%s' % k)\n", []),
    ],
)
def test_unused(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert structure(tmp_path, source) == expected


def test_what_the_manifest_names_is_used(tmp_path: Path) -> None:
    made(tmp_path, {"pyproject.toml": "[project.scripts]\nx = 'pack.module:_main'\n"})
    assert structure(tmp_path, "def _main():\n    return 1\n") == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("requests.get(url)", ["missing-timeout"]),
        ("requests.get(url, timeout=3)", []),
        ("requests.get(url, **options)", []),
        ("session.get(url)", []),
        ("urllib.request.urlopen(url)", ["missing-timeout"]),
        ("urllib.request.urlopen(url, None, 3)", []),
    ],
)
def test_timeouts(tmp_path: Path, call: str, expected: list[str]) -> None:
    source = f"import requests\nimport urllib.request\nx = {call}\n"
    assert rules(made(tmp_path, {"pack/__init__.py": "", "pack/module.py": source}), "security") == expected


CAUGHT = "def test_x():\n    try:\n        f()\n    except ValueError as e:\n        assert e.args\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (CAUGHT, ["assertion-in-except"]),
        (CAUGHT + "    else:\n        pytest.fail('not raised')\n", []),
        (CAUGHT + "    assert done()\n", []),
        (CAUGHT.replace("        f()\n", "        f()\n        raise AssertionError\n"), []),
        (CAUGHT.replace("f()", "1 / 0"), []),
        (CAUGHT.replace("    try", "    def f():\n        g()\n    try"), []),
        (CAUGHT.replace("assert e.args", "pytest.fail('raised')"), []),
        ("@mark.parametrize('a', [1, 2, 1])\ndef test_x(a):\n    assert a\n", ["duplicate-case"]),
        ("@mark.parametrize('a', [1, 2, '1'])\ndef test_x(a):\n    assert a\n", []),
        ("@mark.parametrize('a', [object(), object()])\ndef test_x(a):\n    assert a\n", []),
        (
            "def test_x():\n    a = f()\n    assert a\n\ndef test_y():\n    a = f()\n    assert a\n",
            ["duplicated-test"],
        ),
        ("def test_x():\n    a = f()\n    assert a\n\ndef test_y():\n    a = g()\n    assert a\n", []),
        ("def test_x():\n    assert f()\n\ndef test_y():\n    assert f()\n", []),
        ("def test_x(a):\n    b = a\n    assert b\n\ndef test_y(c):\n    b = a\n    assert b\n", []),
    ],
)
def test_tests(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert rules(made(tmp_path, {"tests/test_x.py": source}), "tests") == expected


def test_the_same_test_of_two_classes_is_no_copy(tmp_path: Path) -> None:
    body = "    def test_x(self):\n        a = self.f()\n        assert a\n"
    source = f"class TestA:\n{body}\nclass TestB:\n{body.replace('test_x', 'test_y')}"
    assert rules(made(tmp_path, {"tests/test_x.py": source}), "tests") == []


RAISES = (
    "class Own(LookupError):\n    pass\n\n"
    "def f(a):\n    '''F.\n\n    :raises {named}: always\n    '''\n    {body}\n"
)


@pytest.mark.parametrize(
    ("named", "body", "expected"),
    [
        ("KeyError", "raise ValueError(a)", ["undocumented-exception"]),
        ("KeyError", "raise Own(a)", ["undocumented-exception"]),
        ("LookupError", "raise Own(a)", []),
        ("Exception", "raise ValueError(a)", []),
        ("ValueError", "raise ValueError(a)", []),
        ("KeyError", "raise NotImplementedError(a)", []),
        ("KeyError", "raise a", []),
        ("KeyError", "try:\n        raise ValueError(a)\n    except ValueError:\n        a = 1", []),
        (
            "KeyError",
            "try:\n        raise ValueError(a)\n    except ValueError:\n        raise",
            ["undocumented-exception"],
        ),
    ],
)
def test_exceptions(tmp_path: Path, named: str, body: str, expected: list[str]) -> None:
    files = {
        "README.md": "x",
        "pack/__init__.py": "",
        "pack/module.py": RAISES.format(named=named, body=body),
    }
    assert rules(made(tmp_path, files), "docs") == expected


def test_exceptions_of_generated_files(tmp_path: Path) -> None:
    source = "# Generated by a tool. DO NOT EDIT.\n" + RAISES.format(
        named="KeyError", body="raise ValueError(a)"
    )
    files = {"README.md": "x", "pack/__init__.py": "", "pack/module.py": source}
    assert rules(made(tmp_path, files), "docs") == []


def test_an_exception_under_another_name(tmp_path: Path) -> None:
    source = "from json import JSONDecodeError as Wrong\n" + RAISES.format(
        named="JSONDecodeError", body="raise Wrong(a)"
    )
    files = {"README.md": "x", "pack/__init__.py": "", "pack/module.py": source}
    assert rules(made(tmp_path, files), "docs") == []


@pytest.mark.parametrize(
    ("mentioned", "page", "expected"),
    [
        (11, "", ["undocumented-export"]),
        (12, "", []),
        (6, "", []),
        (11, ".. automodule:: pack.module\n", []),
    ],
)
def test_exports(tmp_path: Path, mentioned: int, page: str, expected: list[str]) -> None:
    names = [f"name{number}" for number in range(12)]
    page += "\n".join(names[:mentioned])
    files = {
        "README.md": "x",
        "pack/__init__.py": "",
        "pack/module.py": f"__all__ = {names}\n",
        "docs/a.rst": page,
    }
    assert rules(made(tmp_path, files), "docs") == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("license = 'MIT'\nclassifiers = ['License :: OSI Approved :: MIT License']\n", ["license-twice"]),
        ("license = {text = 'MIT'}\nclassifiers = ['License :: OSI Approved :: MIT License']\n", []),
        ("license = 'MIT'\n", []),
    ],
)
def test_licences(tmp_path: Path, lines: str, expected: list[str]) -> None:
    manifest = f"[project]\nname = 'a'\nrequires-python = '>=3.11'\n{lines}"
    assert rules(made(tmp_path, {"pyproject.toml": manifest, "a.py": ""}), "dependencies") == expected
