"""`orchestra doctor`: what a run needs, looked at piece by piece."""

from typing import Final

import attrs

from orchestra.app.checkup import CheckupFinding, Health, checkup
from orchestra.cli.exit_codes import FAILED, OK
from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.render.screen import Line, Screen, Style, print_json, screen
from orchestra.cli.render.text import count
from orchestra.cli.store import store_url, with_store

_SIGNS: Final[dict[Health, tuple[str, Style]]] = {
    "ok": ("✔", "good"),
    "warn": ("○", "warn"),
    "fail": ("✖", "bad"),
}


def doctor(*, store: StoreUrl = None, json: AsJson = False) -> int:
    """Look for what is wrong with this machine, its settings and a store, and say what to do.

    Nothing is changed. Exits with 1 when something fails; warnings are no failure.
    """
    found = [attrs.evolve(each, advice=with_store(each.advice, store)) for each in checkup(store_url(store))]
    well = not any(each.health == "fail" for each in found)
    if json:
        print_json({"well": well, "checks": [attrs.asdict(each) for each in found]})
    else:
        print_findings(screen(), found)
    return OK if well else FAILED


def print_findings(out: Screen, found: list[CheckupFinding]) -> None:
    """Print what was looked at, each piece in a paragraph."""
    wide = max(len(each.check) for each in found) + 2
    for each in found:
        sign, style = _SIGNS[each.health]
        said: Line = [(f"{sign} ", style), (each.check.ljust(wide), "bold"), (each.said, "")]
        out.paragraph(said, indent=wide + 2)
        if each.advice and each.health != "ok":
            out.paragraph([(" " * (wide + 2), ""), ("→ ", "dim"), (each.advice, "")], indent=wide + 4)
    failed, warned = (sum(each.health == health for each in found) for health in ("fail", "warn"))
    out.line()
    if failed or warned:
        out.line(f"{count(failed, 'check')} failed, {count(warned, 'warning')}.")
    else:
        out.line(("✔ ", "good"), "Everything is well.")
