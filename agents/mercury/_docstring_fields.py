"""What a docstring says about parameters and results, in the styles of Sphinx, Google and NumPy."""

import re
import textwrap

_SPHINX = re.compile(
    r"^\s*:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:\n]*\s)?\*{0,2}(\w+)\s*:", re.MULTILINE
)
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Params):[ \t]*$", re.MULTILINE)
_GOOGLE = re.compile(r"^\*{0,2}(\w+)(?: ?\([^)\n]*\))?:(?:\s|$)")
_NUMPY = re.compile(r"^(?:Parameters|Other Parameters)\n-{4,}[ \t]*\n", re.MULTILINE)
_NUMPY_NAME = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_RETURNS = re.compile(
    r"^\s*:returns?:[ \t]*(?P<sphinx>\S.*)$|^Returns:[ \t]*\n(?P<google>[ \t]+\S.*)$|^Returns\n-{4,}",
    re.MULTILINE,
)
_NOTHING = re.compile(r"^\W*(None|nothing)\b", re.IGNORECASE)


def documented_parameters(text: str) -> list[str]:
    """The names of the parameters a docstring describes, in its order."""
    names = _SPHINX.findall(text)
    names += _google(text)
    names += _numpy(text)
    return list(dict.fromkeys(names))


def _google(text: str) -> list[str]:
    match = _SECTION.search(text)
    return _at_margin(text[match.end() :], _GOOGLE) if match else []


def _at_margin(rest: str, pattern: re.Pattern[str]) -> list[str]:
    """The names at the left margin of an indented section, up to where it ends."""
    lines: list[str] = []
    for line in rest.lstrip("\n").split("\n"):
        if line.strip() and not line[:1].isspace():
            break
        lines.append(line)
    section = textwrap.dedent("\n".join(lines)).split("\n")
    return [match[1] for line in section if (match := pattern.match(line))]


def _numpy(text: str) -> list[str]:
    names: list[str] = []
    for match in _NUMPY.finditer(text):
        lines = text[match.end() :].split("\n")
        for number, line in enumerate(lines):
            following = lines[number + 1] if number + 1 < len(lines) else ""
            if re.fullmatch(r"-{4,}\s*", following):
                break  # the next section's heading
            found = _NUMPY_NAME.match(line) if line and not line[0].isspace() else None
            names += [each.strip(" *") for each in found[1].split(",")] if found else []
    return names


def says_it_returns(text: str) -> bool:
    """Whether a docstring has a part about a result that is something."""
    match = _RETURNS.search(text)
    if match is None:
        return False
    described = match["sphinx"] or (match["google"] or "").strip() or "value"
    return not _NOTHING.match(described)
