"""The page in one piece: modules as one script."""

import pytest

from orchestra.web.bundle.script import PAGE_FOLDER, Unbundled, imports, modules, one_script


def _of(**files: str) -> str:
    return one_script("a.js", lambda name: files[name.removesuffix(".js")])


def test_modules_come_after_those_they_need() -> None:
    files = {
        "a.js": 'import { b } from "./b.js";\nimport "./c.js";\nb();\n',
        "b.js": 'import { c } from "./c.js";\nexport const b = () => c;\n',
        "c.js": "export const c = 1;\n",
    }
    assert modules("a.js", files.__getitem__) == ("c.js", "b.js", "a.js")


def test_what_is_imported_is_taken_from_what_is_exported() -> None:
    script = _of(
        a='import {\n  f as g,\n  K,\n} from "./b.js";\ng(K);\n',
        b="export async function f(x) {}\nexport class K {}\nexport const n = 2;\nconst own = 1;\n",
    )
    assert "const { f: g, K } = $b_js;" in script
    assert "return { f, K, n };" in script
    assert "export" not in script
    assert "import" not in script


@pytest.mark.parametrize(
    "source",
    [
        'import * as b from "./b.js";\n',
        'import b from "./b.js";\n',
        "export default 1;\n",
        'export * from "./b.js";\n',
        'import { x } from "elsewhere";\n',
        'import { x } from "https://elsewhere/x.js";\n',
    ],
)
def test_other_forms_are_refused(source: str) -> None:
    with pytest.raises(Unbundled, match=r"a\.js"):
        _of(a=source, b="")


def test_a_circle_is_refused() -> None:
    with pytest.raises(Unbundled, match=r"a\.js → b\.js → a\.js"):
        _of(
            a='import { b } from "./b.js";\nexport const a = 1;\n',
            b='import { a } from "./a.js";\nexport const b = 1;\n',
        )


@pytest.mark.parametrize("text", ["</script>", "</SCRIPT", "<!--"])
def test_nothing_in_a_script_ends_its_element(text: str) -> None:
    with pytest.raises(Unbundled, match="end the script"):
        _of(a=f'const x = "{text}";\n')


def test_every_module_of_the_page_can_be_put_into_one_file() -> None:
    read = {path.name: path.read_text(encoding="utf-8") for path in PAGE_FOLDER.glob("*.js")}
    assert one_script("bundled.js", read.__getitem__)
    used = set(modules("bundled.js", read.__getitem__))
    plain = {"theme.js", "early.js"}  # scripts that are no modules
    assert used == set(read) - plain
    assert all(name in read for source in read.values() for name in imports(source))
