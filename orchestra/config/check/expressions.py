"""Checks of expressions and templates: they can be read, name what is there, and give what is asked for."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, get_args

import attrs

from orchestra.config.check.validate import value_text
from orchestra.config.models import PhaseForm, SpecialistForm, WorkflowForm
from orchestra.config.problems import Mistake, Path
from orchestra.errors import BadExpression
from orchestra.expressions.comparisons import comparisons, kind_of, misfit
from orchestra.expressions.expression import (
    UNKNOWN,
    constant,
    expression_paths,
    least_chars,
    plain_reason,
    template_paths,
)
from orchestra.expressions.names import EVALUATION_KEYS, SPECIALIST_NAMES, TASK_NAMES, TRANSITION_NAMES
from orchestra.limits import TEMPLATE_CHARS
from orchestra.model.records import VerdictKind
from orchestra.suggest import meant

_METHODS: Final = frozenset({"get", "items", "keys", "values"})
_OF_ITEMS: Final = frozenset({"item", "index"})
_NUMBERS: Final = frozenset({"visit", "round", "confidence", "evaluation.score", "evaluation.round"})
_KINDS: Final = {
    "text": "a text",
    "path": "a text",
    "integer": "a number",
    "number": "a number",
    "boolean": "true or false",
    "list": "a list",
    "map": "a mapping",
}
_BARE: Final = re.compile(r"\s*([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?\s*")
_VERDICT: Final = re.compile(r"evaluation\.verdict\s*[!=]=\s*[\"']([^\"']*)[\"']")
_NEVER_BOOLEAN: Final = TRANSITION_NAMES | SPECIALIST_NAMES
_WHAT: Final = {
    "inputs": "input `{}` is declared under `inputs`",
    "context": "context name `{}` is declared under `context`",
    "visits": "phase is called `{}`",
    "needs": "specialist `{}` is among `needs`",
    "results": "specialist of this phase is called `{}`",
    "evaluation": "part of an evaluation is called `{}`",
}


@attrs.frozen(kw_only=True)
class Declarations:
    """The names that a file declares, also where what they stand for is wrong: one mistake is told once."""

    agents: frozenset[str]
    inputs: frozenset[str]
    context: frozenset[str]
    phases: frozenset[str]
    specialists: Mapping[str, frozenset[str]]  # by phase
    input_types: Mapping[str, str]
    graph_whole: bool  # no phase and no transition was cut out
    cut: frozenset[Path] = frozenset()


def read_declarations(data: Any, form: WorkflowForm, cut: Iterable[Path]) -> Declarations:
    """The names that the data of a file declares."""
    phases = _part(data, "phases")
    of_graph = (path[:1] == ("phases",) and (len(path) <= 2 or path[2] == "next") for path in cut)
    return Declarations(
        **{key: frozenset(_part(data, key)) for key in ("agents", "inputs", "context", "phases")},
        specialists={name: frozenset(_part(each, "specialists")) for name, each in phases.items()},
        input_types={name: each.type for name, each in form.inputs.items()},
        graph_whole=not any(of_graph),
        cut=frozenset(cut),
    )


def _part(data: Any, key: str) -> Mapping[str, Any]:
    found = data.get(key) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}


@attrs.frozen(kw_only=True)
class _Scope:
    """What a text may name."""

    names: frozenset[str]
    below: Mapping[str, Collection[str]]  # what may follow a name and a dot
    types: Mapping[str, str]  # of inputs

    def only(self, names: frozenset[str]) -> "_Scope":
        return attrs.evolve(self, names=names)


def text_mistakes(form: WorkflowForm, known: Declarations) -> Iterator[Mistake]:
    """Every mistake in expressions and templates."""
    below = {"inputs": known.inputs, "context": known.context, "visits": known.phases}
    base = _Scope(names=frozenset(), below=below, types=known.input_types)
    for name, phase in form.phases.items():
        yield from _phase(("phases", name), phase, base, known)


def _phase(path: Path, form: PhaseForm, base: _Scope, known: Declarations) -> Iterator[Mistake]:
    for name, specialist in form.specialists.items():
        scope = base
        if set(specialist.needs) <= set(known.specialists[str(path[-1])]):  # else that is told, and no more
            scope = attrs.evolve(base, below={**base.below, "needs": specialist.needs})
        yield from _specialist((*path, "specialists", name), specialist, scope)
    yield from _itemless((*path, "on_low_confidence"), form)
    if form.evaluate is not None:
        scope = base.only(TASK_NAMES - _OF_ITEMS - {"needs"})
        yield from _template((*path, "evaluate", "task"), form.evaluate.task, scope)
    judged = form.evaluate is not None or (*path, "evaluate") in {cut[:3] for cut in known.cut}
    names = TRANSITION_NAMES if judged else TRANSITION_NAMES - {"evaluation"}
    below = {**base.below, "results": known.specialists[str(path[-1])], "evaluation": EVALUATION_KEYS}
    scope = attrs.evolve(base, names=names, below=below)
    for at, transition in enumerate(form.next or ()):
        if transition.when is not None:
            yield from _condition((*path, "next", at, "when"), transition.when, scope)


def _itemless(path: Path, form: PhaseForm) -> Iterator[Mistake]:
    """Additional specialists are about no item of a `foreach`: what makes sense only with one is no use."""
    for at, reaction in enumerate(form.on_low_confidence):
        named = reaction.spawn in form.specialists
        model = reaction.spawn if named else next(iter(form.specialists), None)
        if reaction.spawn is None or model is None or form.specialists[model].foreach is None:
            continue
        if named and reaction.agent in (None, form.specialists[model].agent or model):
            wrong = f"`{model}` has a `foreach`, and an additional one would have no item"
            advice = "name another `agent` that looks at all of them, or ask a person"
            yield Mistake((*path, at, "spawn"), f"{wrong}; {advice}")
        elif _names_items(form.specialists[model].task):
            wrong = f"it would get the task of `{model}`, which names an item, and have none"
            yield Mistake((*path, at, "spawn"), f"{wrong}; leave the item out of the task, or ask a person")


def _names_items(text: str) -> bool:
    try:
        return any(used.partition(".")[0] in _OF_ITEMS for used in template_paths(text))
    except BadExpression:
        return False  # that is told where it stands


def _specialist(path: Path, form: SpecialistForm, scope: _Scope) -> Iterator[Mistake]:
    names = TASK_NAMES if form.foreach is not None else TASK_NAMES - _OF_ITEMS
    yield from _template((*path, "task"), form.task, scope.only(names))
    if form.when is not None:
        yield from _condition((*path, "when"), form.when, scope.only(SPECIALIST_NAMES))
    if form.foreach is not None:
        yield from _items((*path, "foreach"), form.foreach, scope.only(SPECIALIST_NAMES))


def _template(path: Path, text: str, scope: _Scope) -> Iterator[Mistake]:
    try:
        used = template_paths(text)
        size = least_chars(text)  # what its expressions give is known later
    except BadExpression as error:
        yield Mistake(path, f"`{path[-1]}`: {plain_reason(error)}")
        return
    yield from _unknown(path, used, scope)
    if size > TEMPLATE_CHARS:
        limit = f"the limit is {TEMPLATE_CHARS:,}; put the text into a file that the agent reads"
        yield Mistake(path, f"`{path[-1]}` has {size:,} characters, and {limit}")


def _condition(path: Path, text: str, scope: _Scope) -> Iterator[Mistake]:
    found = list(_expression(path, text, scope))
    yield from found
    if found:
        return
    value = constant(text)
    if value is not UNKNOWN and not isinstance(value, bool):
        yield Mistake(path, f"`when` must be true or false, but `{text}` is always {value_text(value)}")
    elif wrong := _bad_verdict(text):
        yield Mistake(path, wrong)
    elif _never_boolean(text, scope):
        yield Mistake(path, f"`when` must be true or false, and `{text.strip()}` is neither; compare it")
    for each in comparisons(text)[1]:  # by order, of things of which it is known that they have none
        for one, other in pairwise(_kind(operand, scope) for operand in each.operands):
            if one and other and (wrong := misfit(one, other)):
                yield Mistake(path, f"`{path[-1]}`: `{each.text}` {wrong}")
                break


def _kind(operand: str, scope: _Scope) -> str | None:
    """What an operand of a comparison is, in a word; None when that is not known yet."""
    value, bare = constant(operand), _BARE.fullmatch(operand)
    if value is not UNKNOWN:
        return kind_of(value)
    if operand in _NUMBERS or (bare is not None and bare[1] == "visits" and bare[2]):
        return "a number"
    return "a text" if operand in ("phase", "run") else _KINDS.get(_input_type(operand, scope) or "")


def _items(path: Path, text: str, scope: _Scope) -> Iterator[Mistake]:
    found = list(_expression(path, text, scope))
    yield from found
    value, kind = constant(text), _input_type(text, scope)
    if not found and value is not UNKNOWN and not isinstance(value, list):
        yield Mistake(path, f"`foreach` must give a list, but `{text}` is always {value_text(value)}")
    elif not found and kind not in (None, "any", "list"):
        yield Mistake(path, f"`foreach` must give a list, and `{text.strip()}` is of type {kind}")


def _input_type(text: str, scope: _Scope) -> str | None:
    """The declared type of the input that an expression merely names."""
    bare = _BARE.fullmatch(text)
    return scope.types.get(bare[2] or "") if bare is not None and bare[1] == "inputs" else None


def _expression(path: Path, text: str, scope: _Scope) -> Iterator[Mistake]:
    if "{{" in text:
        message = f"`{path[-1]}` is an expression already; write it without `{{{{` and `}}}}`"
        yield Mistake(path, message)
        return
    try:
        yield from _unknown(path, expression_paths(text), scope)
    except BadExpression as error:
        yield Mistake(path, f"`{path[-1]}`: {plain_reason(error)}")


def _unknown(path: Path, used: frozenset[str], scope: _Scope) -> Iterator[Mistake]:
    dashed = {dotted: name for dotted in used if (name := _dashed(dotted, scope))}
    subtracted = {word for name in dashed.values() for word in name.split("-")[1:]}
    for dotted in sorted(used):
        top, _, rest = dotted.partition(".")
        first = rest.partition(".")[0]
        if top not in scope.names:
            if top not in subtracted:
                yield Mistake(path, f"`{top}` {_why(top, scope)}")
        elif first and top in scope.below and first not in {*scope.below[top], *_METHODS}:
            hint = f'; write `{top}["{dashed[dotted]}"]`' if dotted in dashed else ""
            hint = hint or meant(first, scope.below[top])
            yield Mistake(path, f"`{top}.{first}`: no {_WHAT[top].format(first)}{hint}")


def _dashed(dotted: str, scope: _Scope) -> str | None:
    """The name with a dash in it that was meant, and that looks like a subtraction."""
    top, _, first = dotted.partition(".")
    names = scope.below.get(top, ()) if first else ()
    longer = [name for name in names if name.startswith(f"{first}-")] if first not in names else []
    return min(longer, default=None)


def _why(top: str, scope: _Scope) -> str:
    if top == "evaluation":
        return "cannot be used here, because this phase has no `evaluate`"
    if top in _OF_ITEMS:
        return "needs a `foreach`"
    return f"cannot be used here{meant(top, scope.names)}"


def _bad_verdict(text: str) -> str | None:
    """A comparison with a verdict that does not exist, which would quietly never hold."""
    verdicts = get_args(VerdictKind)
    unknown = (word for word in _VERDICT.findall(text) if word not in verdicts)
    return next((f"there is no verdict '{word}'{meant(word, verdicts)}" for word in unknown), None)


def _never_boolean(text: str, scope: _Scope) -> bool:
    bare = _BARE.fullmatch(text)
    if bare is None or bare[1] not in _NEVER_BOOLEAN:
        return False
    return bare[2] is None or bare[1] == "visits" or _input_type(text, scope) not in (None, "any", "boolean")
