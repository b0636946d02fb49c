"""Going on with runs and ordering them about: what resume, fork, rollback and the orders share.

An order goes to the process that plays a run, or, where none does, is done here. What cannot simply be undone
is asked about before.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import anyio.to_thread

from orchestra.app.orchestra import Orchestra
from orchestra.app.resumable import playable_runs
from orchestra.app.workflow_files import load_workflow
from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.play.jobs import Job, conclude, exit_code, perform
from orchestra.cli.play.lifeline import Lifeline, play
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.render.displays import Display, display_for
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import print_json, screen
from orchestra.cli.store import option, with_store
from orchestra.engine.orders import Order
from orchestra.errors import DamageError, RunOwned, UsageError
from orchestra.history.lineage import last_known
from orchestra.history.references import resolve_run
from orchestra.ids import RunId
from orchestra.model.state import TERMINAL
from orchestra.ports.run_status import shown_status
from orchestra.ports.store import RunRow

_GOING_ON: Final = frozenset({"answer", "provide", "retry"})
"""Orders after which a run could go on."""


def resume_runs(
    runs: Sequence[str] | None,
    *,
    wait: bool = False,
    accept: bool = False,
    workflow: Path | None = None,
    inputs: Mapping[str, str] | None = None,
    record: Path | None = None,
    replay: Path | None = None,
    quiet: bool = False,
    store: str | None = None,
    as_json: bool = False,
) -> int:
    """Resume runs, or with None all that can simply go on, and play them; returns the exit code."""
    loaded = None if workflow is None else load_workflow(workflow)
    how: dict[str, Any] = {"workflow": loaded, "accept_changes": accept, "wait": wait, "inputs": inputs}

    async def main(lifeline: Lifeline) -> int:
        several = runs is None or len(runs) > 1
        display = display_for(as_json=as_json, quiet=quiet, several=several, store=store)
        async with OrchestraPool([display], record=record, replay=replay) as pool:
            base = await pool.open_existing(store)
            archive = base.manager.archive
            if runs is None:
                names = [found.run for found in playable_runs(archive)]
            else:
                names = list(dict.fromkeys(resolve_run(archive, each) for each in runs))
            jobs: list[Job] = []
            damaged = False
            with display:
                for name in names:
                    if await _tell_to_go_on(base, name, display):
                        continue
                    try:
                        orchestra = await pool.open_for(archive, name, store)
                        state = (await anyio.to_thread.run_sync(last_known, archive, name)).state
                        if state.workflow.definition is not None:
                            display.expect((await orchestra.workbench.stored_definition(state)).workflow)
                        jobs.append(Job(partial(orchestra.resume, name, **how), str(name)))
                    except DamageError as error:
                        if runs is not None:  # with --all the others are not to blame
                            raise
                        damaged = True
                        display.say(f"not resuming {name}: {with_store(str(error), store)}")
                played = await perform(pool, jobs, display, lifeline, store)
                code = exit_code([played, DAMAGE if damaged else OK])
            if not names and not as_json:
                screen().line("No run was cut off or answered; nothing to resume.")
            conclude(jobs, pool, display, store=store, outputs=base.engine.outputs, as_json=as_json)
            lifeline.leave(code)
        return code

    return play(main)


async def _tell_to_go_on(orchestra: Orchestra, run: RunId, display: Display) -> bool:
    """Whether another process plays the run and was told to go on; raises `RunOwned` when it does already."""
    found = orchestra.manager.archive.run(run)
    if not found.owned:
        return False
    if found.status == "running":
        raise RunOwned(run=run, owner=found.owner)
    await orchestra.order(run, Order(kind="resume"))
    display.say(f"{run} goes on, played by {found.owner}")
    return True


def order_and_report(
    run: RunId, order: Order, done: str, resume: bool, store: str | None, as_json: bool
) -> int:
    """Have an order done and say so; with `resume`, go on with the run when nobody plays it."""
    sent = anyio.run(send_order, run, order, store)
    row = sent.row
    if resume and not row.owned and row.status not in TERMINAL:
        if not as_json:  # that it was done is said first, whatever comes of going on
            screen().print_cut([(run, "bold"), (f"  {done}", "")])
        return resume_runs([run], store=store, as_json=as_json)
    if as_json:
        print_json({"run": run, "order": order.kind, "status": row.status, "owned": row.owned})
        return 0
    out = screen()
    out.print_cut([(run, "bold"), (f"  {done}  ", ""), *status_cell(sent.stands)])
    if not sent.elsewhere and order.kind in _GOING_ON:
        out.line(("  next       ", "dim"), f"orchestra resume {run}{option(store)}")
    return 0


class SentOrder(NamedTuple):
    """What came of an order."""

    row: RunRow  # the run as it is then
    stands: str  # how that is shown
    elsewhere: bool  # a process plays it, or did when the order came


async def send_order(run: RunId, order: Order, store: str | None) -> SentOrder:
    """Have an order done; raises `BadOrder`."""
    async with OrchestraPool() as pool:
        archive = (await pool.open_existing(store)).manager.archive
        orchestra = await pool.open_for(archive, run, store)
        played = archive.run(run).owned
        await orchestra.order(run, order)
        row = archive.run(run)
        return SentOrder(row, shown_status(archive.store, row), played or row.owned)


class NotConfirmed(UsageError):
    """Something that cannot simply be undone was asked for, and nobody said yes."""

    template = "{what} was not confirmed. Repeat it with --yes."


def confirm(question: str, what: str, yes: bool) -> None:
    """Go on when somebody says yes, on the command line or at the terminal; raises `NotConfirmed`."""
    if not yes and (ask(question, " [y/N]") or "").lower() not in ("y", "yes"):
        raise NotConfirmed(what=what)


def ask(question: str, choices: str, details: Sequence[str] = ()) -> str | None:
    """What a person at the terminal says to a question, and to details above it; None without one."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        return None
    out = screen()
    for line in details:
        out.line((f"  {line}", "dim"))
    out.out.write(out.render([(question, "bold"), (choices, "dim")]) + " ")
    out.out.flush()
    return sys.stdin.readline().strip() or None
