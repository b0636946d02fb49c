"""`orchestra store …`: looking after a store."""

from typing import Any

import attrs

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.progress import Progress
from orchestra.cli.render.screen import Screen, screen
from orchestra.cli.render.text import count, size
from orchestra.cli.store import open_for_examination, open_for_reading, open_for_writing, option, store_url
from orchestra.errors import BadSetting, LostCommits
from orchestra.ports.store import Store, StoreProblem, StoreStats


def info(*, store: StoreUrl = None, json: AsJson = False) -> None:
    """Say where a store is, what kind it is and how much it holds."""
    with open_for_reading(store) as opened:
        stats, place, kind = opened.stats(), opened.place, opened.properties
    if json:
        print_json({"place": place, **attrs.asdict(kind), **attrs.asdict(stats)})
        return
    out = screen()
    out.line((place, "bold"), f"  {kind.scheme}, {'durable' if kind.durable else 'gone with the process'}")
    for label, value in _facts(stats):
        out.line((label.ljust(11), "dim"), value)
    out.hints((f"orchestra runs{option(store)}", "what is in it"))


def _facts(stats: StoreStats) -> list[tuple[str, str]]:
    pruned = f", {stats.pruned:,} of them pruned" if stats.pruned else ""
    return [
        ("runs", f"{stats.runs:,}"),
        ("snapshots", f"{stats.rows:,}{pruned}  {size(stats.row_bytes)}"),
        ("objects", f"{stats.objects:,}  {size(stats.object_bytes)}"),
        ("on disk", size(stats.file_bytes)),
    ]


def check(*, store: StoreUrl = None, json: AsJson = False) -> int:
    """Let a store look for damage in itself: files, tables and checksums, not what the bytes mean.

    `orchestra verify` also proves every digest. Exits with 4 when there is damage.
    """
    with open_for_examination(store) as opened:
        problems = list(opened.check())
        place = opened.place
    if json:
        listed = [attrs.asdict(each) for each in problems]
        print_json({"place": place, "whole": not problems, "problems": listed})
    else:
        _print_check(screen(), place, problems, store)
    return DAMAGE if problems else OK


def _print_check(out: Screen, place: str, problems: list[StoreProblem], store: str | None) -> None:
    for each in problems:
        out.line(("✖ ", "bad"), (f"{each.what} {each.where}", "bold"), f"  {each.reason}")
    if problems:
        out.line(f"{count(len(problems), 'problem')} in {place}.")
        out.line(f"Next: `orchestra verify{option(store)}` says which snapshots are still whole.")
    else:
        out.line(("✔ ", "good"), f"{place} is in order.")


def compact(*, store: StoreUrl = None, json: AsJson = False) -> None:
    """Give free space back to the filesystem."""
    with open_for_writing(store) as opened, Progress("compacting"):
        before = opened.stats().file_bytes
        opened.compact()
        after, place = opened.stats().file_bytes, opened.place
    if json:
        print_json({"place": place, "bytes_before": before, "bytes_after": after})
        return
    screen().line(f"{place}: {size(before)} → {size(after)}.")


def accept_loss(*, store: StoreUrl = None, json: AsJson = False) -> None:
    """Go on with a store that lost acknowledged commits, as it is now.

    What is gone stays gone; afterwards runs can be recorded into the store again.
    """
    with _damaged(store) as opened:
        accepting = getattr(opened, "accept_loss", None)  # of stores that notice when commits are gone
        if accepting is None:
            reason = "this kind of store has no record of what it may have lost"
            raise BadSetting(setting="--store", value=store_url(store), reason=reason)
        given_up, place = accepting(), opened.place
    answer: dict[str, Any] = {"place": place, "commits_given_up": given_up}
    if json:
        print_json(answer)
        return
    out = screen()
    out.line(f"{place} is taken as it is; {count(given_up, 'commit')} given up.")
    out.hints((f"orchestra verify{option(store)}", "what is whole"))


def _damaged(given: str | None) -> Store:
    """The store, also if opening it for changes is refused because of what it lost."""
    try:
        return open_for_writing(given)
    except LostCommits:
        return open_for_examination(given)
