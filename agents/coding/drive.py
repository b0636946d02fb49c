"""Drives a command-line coding agent: an agent for `command:` that works with any program.

It speaks the JSON lines of `docs/reference/json-lines.md` with orchestra. The program gets the task as an
argument, where its command has `{task}`, else on standard input; what it prints, plain text or JSON lines, is
streamed. The id of its session is saved as soon as it is known, so that the next attempt goes on in it; it is
a part of the result, and a later visit finds it in the context name that is called as the specialist. It
stands on nothing but Python.

Settings, under `with:` in the workflow, by the name that the input `cli` has; `{here}` is this file's folder:
  run      the command that begins a session
  resume   the one that goes on with `{session}`; without it every attempt begins anew
  seconds  how long the program may print nothing before it is ended (600)
"""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SESSION_KEYS = ("session_id", "sessionId", "thread_id", "conversation_id")
STDERR_CHARS = 2000
HERE = str(Path(__file__).resolve().parent)


def report(kind: str, **fields: Any) -> Any:
    """Say something; what has an `id` is waited for, and is durable then."""
    print(json.dumps({"type": kind, **fields}), flush=True)
    return json.loads(sys.stdin.readline() or "null") if "id" in fields else None


def main() -> None:
    """Read the assignment, run the program, say what came of it."""
    given = json.loads(sys.stdin.readline())
    programs = given["settings"]
    known = programs.get(given["inputs"].get("cli") or next(iter(programs), ""))
    if known is None:
        report(
            "failed", message=f"`with` has no such program: {given['inputs'].get('cli')}", recoverable=False
        )
        return
    before = given["context"].get(given["name"])
    held = given["private"] or (before if isinstance(before, dict) else {})
    session = held.get("session", "")
    goes_on = bool(session and known.get("resume"))
    command = [
        each.replace("{here}", HERE).replace("{session}", session).replace("{task}", prompt(given, goes_on))
        for each in known["resume" if goes_on else "run"]
    ]
    by_input = not any("{task}" in each for each in known["resume" if goes_on else "run"])
    Program(command, prompt(given, goes_on) if by_input else "", given, known).run()


def prompt(given: dict[str, Any], goes_on: bool) -> str:
    """What the program is told: the task, unless it had that in this session and was interrupted."""
    if goes_on and given["private"]:
        return "You were interrupted. Look at what is done, and go on."
    return "\n\n".join([given["description"], *given["feedback"][-1:]])


class Program:
    """The program at work."""

    def __init__(self, command: list[str], told: str, given: dict[str, Any], known: dict[str, Any]) -> None:
        self.command, self.told = command, told
        self.folder = Path(given["project"]) / (given["inputs"].get("folder") or ".")
        self.seconds = float(known.get("seconds", 600))
        self.private = dict(given["private"] or {})
        self.answer = ""

    def run(self) -> None:
        """Start it, hand on what it says, and say how it ended."""
        try:
            process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except OSError as error:
            report(
                "failed", error="NoProgram", message=f"{self.command[0]}: {error.strerror}", recoverable=False
            )
            return
        lines: queue.Queue[str | None] = queue.Queue()
        errors: list[str] = []
        threading.Thread(target=self._tell, args=(process,), daemon=True).start()
        threading.Thread(target=read_lines, args=(process, lines), daemon=True).start()
        listening = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
        listening.start()
        try:
            while (line := lines.get(timeout=self.seconds)) is not None:
                self._hear(line)
            code = process.wait(timeout=self.seconds)
        except (queue.Empty, subprocess.TimeoutExpired):
            process.kill()
            report("failed", error="Silent", message=f"{self.command[0]} said nothing for {self.seconds:g} s")
            return
        if code:
            listening.join(timeout=1)  # what it left behind may hold the pipe open
            said = "".join(errors)[-STDERR_CHARS:].strip()
            report("failed", error="ProgramFailed", message=f"{self.command[0]} ended with {code}: {said}")
            return
        report("result", output={"said": self.answer.strip(), **self.private})

    def _tell(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        try:
            with process.stdin:
                process.stdin.write(self.told)
        except BrokenPipeError:  # it does not listen
            pass

    def _hear(self, line: str) -> None:
        """A line of the program: an object of its own form, or text."""
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            self.answer += line
            report("emitted", text=line)
            return
        self._remember(next((said[key] for key in SESSION_KEYS if said.get(key)), None))
        for text in texts_in(said) if said.get("type") != "user" else ():  # what its tools returned
            self.answer = text
            report("emitted", text=text + "\n")
        if isinstance(said.get("result"), str):
            self.answer = said["result"]
        usage, cost = said.get("usage"), said.get("total_cost_usd")
        if isinstance(usage, dict):
            report(
                "used",
                api_calls=1,
                tokens_in=int(usage.get("input_tokens") or 0),
                tokens_out=int(usage.get("output_tokens") or 0),
                cost_micros=round(float(cost or 0) * 1_000_000),
            )

    def _remember(self, session: Any) -> None:
        """Save the session's id before anything else happens in it."""
        if isinstance(session, str) and session != self.private.get("session"):
            self.private["session"] = session
            report("saved", id=1, private=self.private)


def read_lines(process: "subprocess.Popen[str]", lines: "queue.Queue[str | None]") -> None:
    """Put what a program prints in a queue, None last."""
    for line in process.stdout or ():
        lines.put(line)
    lines.put(None)


def texts_in(said: Any) -> Iterator[str]:
    """The texts in an object, wherever they stand: each form has them under `text`."""
    if isinstance(said, dict):
        if isinstance(said.get("text"), str):
            yield said["text"]
        said = [held for key, held in said.items() if key != "text"]
    for each in said if isinstance(said, list) else ():
        yield from texts_in(each)


if __name__ == "__main__":
    main()
