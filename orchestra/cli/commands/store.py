"""`orchestra store …`: looking after a store."""

import attrs

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.render.screen import Progress, print_json, screen
from orchestra.cli.render.text import count, size
from orchestra.cli.store import open_for_examination, open_for_reading, open_for_writing, option, store_url
from orchestra.errors import BadSetting, LostCommits


def info(*, store: StoreUrl = None, json: AsJson = False) -> None:
    """Say where a store is, what kind it is and how much it holds."""
    with open_for_reading(store) as opened:
        stats, place, kind = opened.stats(), opened.place, opened.properties
    if json:
        print_json({"place": place, **attrs.asdict(kind), **attrs.asdict(stats)})
        return
    out = screen()
    pruned = f", {stats.pruned:,} of them pruned" if stats.pruned else ""
    out.line((place, "bold"), f"  {kind.scheme}, {'durable' if kind.durable else 'gone with the process'}")
    out.line(("runs       ", "dim"), f"{stats.runs:,}")
    out.line(("snapshots  ", "dim"), f"{stats.rows:,}{pruned}  {size(stats.row_bytes)}")
    out.line(("objects    ", "dim"), f"{stats.objects:,}  {size(stats.object_bytes)}")
    out.line(("on disk    ", "dim"), size(stats.file_bytes))
    out.hints((f"orchestra runs{option(store)}", "what is in it"))


def check(*, store: StoreUrl = None, json: AsJson = False) -> int:
    """Let a store look for damage in itself: files, tables and checksums, not what the bytes mean.

    `orchestra verify` also proves every digest. Exits with 4 when there is damage.
    """
    with open_for_examination(store) as opened:
        problems, place = list(opened.check()), opened.place
    code, out = DAMAGE if problems else OK, screen()
    if json:
        listed = [attrs.asdict(each) for each in problems]
        print_json({"place": place, "whole": not problems, "problems": listed})
        return code
    for each in problems:
        out.line(("✖ ", "bad"), (f"{each.what} {each.where}", "bold"), f"  {each.reason}")
    if problems:
        out.line(f"{count(len(problems), 'problem')} in {place}.")
        out.line(f"Next: `orchestra verify{option(store)}` says which snapshots are still whole.")
    else:
        out.line(("✔ ", "good"), f"{place} is in order.")
    return code


def compact(*, store: StoreUrl = None, json: AsJson = False) -> None:
    """Give free space back to the filesystem."""
    with open_for_writing(store) as opened, Progress("compacting"):
        before = opened.stats().file_bytes
        opened.compact()
        after, place = opened.stats().file_bytes, opened.place
    if json:
        print_json({"place": place, "bytes_before": before, "bytes_after": after})
    else:
        screen().line(f"{place}: {size(before)} → {size(after)}.")


def accept_loss(*, store: StoreUrl = None, json: AsJson = False) -> None:
    """Go on with a store that lost acknowledged commits, as it is now.

    What is gone stays gone; afterwards runs can be recorded into the store again.
    """
    try:
        damaged = open_for_writing(store)
    except LostCommits:  # opening it for changes is refused because of them
        damaged = open_for_examination(store)
    with damaged as opened:
        accepting = getattr(opened, "accept_loss", None)  # of stores that notice when commits are gone
        if accepting is None:
            reason = "this kind of store has no record of what it may have lost"
            raise BadSetting(setting="--store", value=store_url(store), reason=reason)
        given_up, place = accepting(), opened.place
    if json:
        print_json({"place": place, "commits_given_up": given_up})
        return
    out = screen()
    out.line(f"{place} is taken as it is; {count(given_up, 'commit')} given up.")
    out.hints((f"orchestra verify{option(store)}", "what is whole"))
