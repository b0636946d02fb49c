"""Kills a playing process after an agent returned and before its result is stored, and has another go on.

    python -m tests.fault.support.returning FOLDER SEED COUNT

Which agent it is and when the process dies is drawn by chance: at the very commit that would store the
result, or some moment after the return, whatever the process does then. Each line of output is one case as
JSON.
"""

import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import anyio
import attrs

from orchestra.agents.context import Context
from orchestra.ids import Digest
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.faulty import Damage, Fault, FaultPlan, FaultyStore, Kill
from tests.fault.support.engine_killing import acknowledged
from tests.fault.support.engine_work import ASSIGNMENTS, RUN, Cast, digest_of, play
from tests.fault.support.killing import KILLED, Child, Outcome, in_child

LATEST_SECONDS: Final = 0.004


@attrs.frozen(kw_only=True)
class Death:
    """After the return of which agent, counted from 0, and how long after; None: at the next commit."""

    nth: int
    seconds: float | None


class Trap(FaultPlan):
    """Strikes at the next commit once it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.set = False

    def strikes(self, method: str) -> list[Fault | Kill | Damage]:
        due = super().strikes(method)
        return [Kill()] if self.set and method == "commit" else due


class MortalCast(Cast):
    """The agents; each notes its effect key when it begins and when it returns, and one springs the trap."""

    def __init__(self, folder: Path, death: Death | None, trap: Trap) -> None:
        super().__init__(folder)
        self._diary, self._death, self._trap, self._returns = folder / "diary", death, trap, 0

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {name: self._mortal(agent) for name, agent in super().functions().items()}

    def _mortal(self, agent: Callable[..., Any]) -> Callable[..., Any]:
        async def carried(ctx: Context) -> Any:
            self._note("began", ctx)
            result = await agent(ctx)
            self._note("returned", ctx)
            if self._death is not None and self._returns == self._death.nth:
                self._spring(self._death)
            self._returns += 1
            return result

        return carried

    def _note(self, what: str, ctx: Context) -> None:
        descriptor = os.open(self._diary, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(descriptor, f"{what} {ctx.task_id} {ctx.effect_key}\n".encode())
        os.close(descriptor)

    def _spring(self, death: Death) -> None:
        if death.seconds is None:
            self._trap.set = True
            return
        threading.Thread(target=_die, args=(death.seconds,), daemon=True).start()


def _die(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        time.sleep(0)
    os.kill(os.getpid(), signal.SIGKILL)


def played(folder: Path, death: Death | None) -> Outcome:
    """Begin or go on with the run until its end or its process's."""
    folder.mkdir(parents=True, exist_ok=True)

    def do(child: Child) -> None:
        trap = Trap()
        cast = MortalCast(folder, death, trap)
        with SqliteStore(folder / "orchestra.db", create=True) as inner:
            ending = anyio.run(play, FaultyStore(inner, trap), folder, cast)
            child.acknowledge(RUN, 0, digest_of(ending))

    return in_child(do)


def diary(folder: Path) -> list[tuple[str, str, str]]:
    """What began and returned, with the effect keys, in order."""
    noted = folder / "diary"
    lines = noted.read_text().splitlines() if noted.exists() else []
    return [(what, task, key) for what, task, key in (line.split() for line in lines)]


def case(folder: Path, death: Death, wanted: Digest) -> dict[str, Any]:
    """Die as planned, go on, and compare; what came of it, as data."""
    first = played(folder, death)
    before, stored = diary(folder), acknowledged(folder)
    lost = {task for what, task, _ in before if what == "returned"} - stored
    last = played(folder, None)
    after = diary(folder)[len(before) :]
    again = {task for what, task, _ in after if what == "began"}
    complaints = [f"{task} returned, was not stored, and is not done again" for task in lost - again]
    complaints += [f"{task} was stored and is done again" for task in stored & again]
    complaints += list(_changed_keys([*before, *after]))
    if list(last.acknowledged.values()) != [wanted]:
        complaints.append(f"it ended otherwise: {last.complaint}")
    died = first.status == KILLED
    return {"case": str(death), "died": died, "lost": len(lost), "complaint": "; ".join(complaints)}


def _changed_keys(entries: list[tuple[str, str, str]]) -> Iterator[str]:
    keys: dict[str, set[str]] = {}
    for _, task, key in entries:
        keys.setdefault(task, set()).add(key)
    return (f"{task} had the effect keys {sorted(known)}" for task, known in keys.items() if len(known) > 1)


def deaths(seed: int, count: int) -> Iterator[Death]:
    """By chance, in turn at the commit and at some moment."""
    chance = random.Random(seed)
    for at in range(count):
        seconds = chance.uniform(0, LATEST_SECONDS) if at % 2 else None
        yield Death(nth=chance.randrange(ASSIGNMENTS), seconds=seconds)


def main() -> None:
    """Run as many cases as the command line asks for."""
    folder, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    whole = played(folder / "undisturbed", None)
    assert whole.status == 0, whole.complaint
    (wanted,) = whole.acknowledged.values()
    for at, death in enumerate(deaths(seed, count)):
        place = folder / str(at)
        print(json.dumps(case(place, death, wanted)), flush=True)
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
