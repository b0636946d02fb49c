"""Errors, by who must act.

    OrchestraError
    ├── UsageError      the caller asked for something that cannot be (exit code 2): BadName, BadReference,
    │                   UnknownRun, UnknownSnapshot, AmbiguousReference, UnknownPath, BadExpression,
    │                   BadSetting, UnknownStore, RunExists, NotResumable, BadWorkflow, BadInput, BadAgent,
    │                   BadAgentFile, BadAgentKind, BadModel, BadCassette, NotOnCassette, BadOrder,
    │                   DefinitionChanged
    ├── AgentError      an agent did not do what it should: AgentFailed, AgentAbandoned
    ├── ValueRefused    an agent or caller handed in a value that cannot be stored: UnstorableValue,
    │                   ValueTooLarge, ContentTooLarge, IllegalEvent
    ├── OwnershipError  somebody else may write: RunOwned, FenceLost, HeadMoved, CommandGone
    ├── StoreError      the operator must look at the store: NotAStore, StoreMissing, StoreTooNew,
    │                   StoreReadOnly, StoreFull, StoreBusy, StoreFailed, StoreClosed, SnapshotTooLarge
    └── DamageError     stored bytes are not what was written (exit code 4): Damaged, MissingObject,
                        PrunedSnapshot, LostCommits

Constructors take data and write the sentence; its last sentence says what to do next. The data stays readable
as attributes, so that nobody parses a message.
"""

from functools import partial
from typing import ClassVar


class OrchestraError(Exception):
    """The root of everything this program raises on purpose."""

    exit_code: ClassVar[int] = 1
    template: ClassVar[str] = "Something failed."

    def __init__(self, **data: object) -> None:
        self.data = data
        super().__init__(self.sentence(**data))

    def __getattr__(self, name: str) -> object:
        if name not in self.__dict__.get("data", ()):
            raise AttributeError(name)
        return self.data[name]

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), **self.data), ()

    def sentence(self, **data: object) -> str:
        """What happened and what to do next."""
        text = self.template.format(**{key: _printable(value) for key, value in data.items()})
        return text.replace("`?.", "`?")  # a reason may end with a question


def _printable(value: object) -> object:
    if isinstance(value, str):
        return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in value)
    return value.hex()[:16] if isinstance(value, bytes) else value


class UsageError(OrchestraError):
    """The caller asked for something that cannot be."""

    exit_code = 2


class BadName(UsageError):
    """A name that cannot be used."""

    template = "{name!r} cannot be used as {what}. Use {rule}."


class BadReference(UsageError):
    """A reference that cannot be read."""

    template = (
        "{reference!r} is not a reference: {reason}. Write RUN, RUN@12, RUN@head, RUN@last-good, "
        "RUN@phase:NAME, a digest prefix or a snapshot's UUID."
    )


class UnknownRun(UsageError):
    """No such run."""

    template = "There is no run {run!r} in {store}.{hint} See `orchestra runs`."


class UnknownSnapshot(UsageError):
    """No such snapshot."""

    template = "Run {run!r} has no snapshot {reference!r}: {reason}. See `orchestra snapshots {run}`."


class AmbiguousReference(UsageError):
    """The beginning of a digest or run id that fits several."""

    template = "{prefix!r} fits {count} {what}: {examples}. Write more of it."


class UnknownPath(UsageError):
    """No such place in that state."""

    template = "{reference} has nothing at {path!r}: {reason}. See `orchestra show {reference}`."


class BadExpression(UsageError):
    """An expression that cannot be read, or that says neither yes nor no."""

    template = "The expression {expression!r} cannot be used: {reason}."


class BadSetting(UsageError):
    """A setting that cannot be honoured."""

    template = "The setting {setting} cannot be {value!r}: {reason}."


class UnknownStore(UsageError):
    """A store URL nobody answers to."""

    template = "No store answers to {url!r}. Known schemes: {known}."


class RunExists(UsageError):
    """A run of that id is there already."""

    template = "A run {run!r} is there already. Resume it, or begin another under a new id."


class NotResumable(UsageError):
    """The run is over."""

    template = "Run {run!r} is {status} and cannot go on. Fork it: `orchestra fork {run}@0` begins it again."


class BadWorkflow(UsageError):
    """A workflow file with mistakes, all of them listed."""

    template = "{problems}\n{file} cannot be used: {count}."


class BadInput(UsageError):
    """An input that is missing or does not fit."""

    template = "The input {input!r} of {workflow} cannot be used: {reason}. {advice}"


class BadAgent(UsageError):
    """An agent that cannot be loaded."""

    template = "The agent {agent!r} cannot be loaded from {place}: {reason}."


class BadAgentFile(BadAgent):
    """A Markdown agent, or a skill, that cannot be read. Data: `file`, `line`, `reason`, `advice`."""

    template = "{file}, line {line}: {reason}. {advice}"


class BadAgentKind(UsageError):
    """A kind of agent that is unknown, or whose package cannot be used."""

    template = "Agents of the kind {kind!r} cannot be used: {reason}. {advice}"


class BadModel(UsageError):
    """A language model that is unknown, or whose package or key is missing."""

    template = "The model {model!r} cannot be used: {reason}. {advice}"


class BadCassette(UsageError):
    """A file of recorded answers that cannot be used."""

    template = "The cassette {place} cannot be used: {reason}. {advice}"


class NotOnCassette(BadCassette):
    """A question whose answer was not recorded. Data: `agent`, `step`, `reason`, `changes` (lines)."""

    template = (
        "The cassette {place} has no answer for step {step} of {agent!r}: {reason}. "
        "Record it again with --record, or put the prompt back.{changes}"
    )


class BadOrder(UsageError):
    """Something that cannot be done with the run as it is."""

    template = "{order} cannot be done: {reason}. See `orchestra status`."


class DefinitionChanged(UsageError):
    """The workflow is not the one the run was started with."""

    template = (
        "The workflow of run {run} has changed since it was started: {changes}. "
        "Resume with --accept-changes to go on with the new one, or restore the old file."
    )


class AgentError(OrchestraError):
    """An agent did not do what it should."""


class AgentFailed(AgentError):
    """An attempt failed. Data: `agent`, `error` (its type), `message`, `stack`, `recoverable`, `details`."""

    template = "{error}: {message}"

    @classmethod
    def plain(cls, agent: str, error: str, message: str, **more: object) -> "AgentFailed":
        """A failure without a stack: the agent raised nothing and still did not do what it must."""
        known = {"stack": "", "recoverable": True, "details": None, **more}
        return cls(agent=agent, error=error, message=message, **known)


class AgentAbandoned(AgentError):
    """An agent that had to stop and could not be stopped."""

    template = "The agent {agent!r} did not stop within {seconds} s: {reason}. Its result will be refused."


class ValueRefused(OrchestraError):
    """An agent or caller handed in something that cannot be stored."""


class UnstorableValue(ValueRefused):
    """A type, depth or content that would not come back exactly."""

    template = "The value at {path} cannot be stored exactly: {reason}. {advice}"


class ValueTooLarge(ValueRefused):
    """A value above its limit."""

    template = (
        "The value at {path} takes more than {limit:,} bytes, which is the limit. "
        "Write it to a file and return a reference to it."
    )


class ContentTooLarge(ValueRefused):
    """A part of a snapshot above what a reader accepts."""

    template = (
        "A {kind} of the next snapshot would take {size} {unit} and the limit is {limit}. "
        "Nothing was recorded; hand long texts in as values, which are stored on their own."
    )


class IllegalEvent(ValueRefused):
    """An event that does not fit the state it meets."""

    template = "The event {kind!r} of run {run!r} does not fit: {reason}. Nothing was recorded."


class OwnershipError(OrchestraError):
    """Somebody else may write."""


class RunOwned(OwnershipError):
    """Another live process owns the run."""

    template = "Run {run!r} is owned by {owner}. Follow it: `orchestra watch {run}`; or pause or cancel it."


class FenceLost(OwnershipError):
    """Ownership was taken over meanwhile; this writer must stop."""

    template = (
        "Run {run!r} was taken over: this writer holds fence {fence}, the store is at {current}. "
        "Nothing was written; stop this writer."
    )


class HeadMoved(OwnershipError):
    """The head is not where the writer left it."""

    template = (
        "The head of run {run!r} is at {current}, not at {expected}. "
        "Nothing was written; restore the run again."
    )


class CommandGone(OwnershipError):
    """A command that should be consumed is not there: its sender took it back."""

    template = "Run {run!r} cannot consume command {command}: {reason}. Nothing was written; leave it alone."


class StoreError(OrchestraError):
    """The operator must look at the store."""


class NotAStore(StoreError):
    """The place holds something else."""

    exit_code = 2
    template = "{place} is no store or export of orchestra: {reason}. It was left as it is; name another."


class StoreMissing(StoreError):
    """The place holds nothing."""

    exit_code = 2
    template = (
        "There is no store at {place}. Name one with --store or ORCHESTRA_STORE, or record a run first."
    )


class StoreTooNew(StoreError):
    """Written by a newer format."""

    exit_code = 2
    template = (
        "{place} is of format {found}; this program reads up to {known}. "
        "It was left as it is; use a newer version of orchestra."
    )


class StoreReadOnly(StoreError):
    """The file or filesystem refuses writes."""

    template = "{place} cannot be written: {reason}. Change its permissions, or name another store."


class StoreFull(StoreError):
    """No space left."""

    template = (
        "Disk full: {place} needs about {needed} more. Nothing acknowledged is lost; "
        "free space (`orchestra prune` works on a full disk), then go on with `orchestra resume`."
    )


class StoreBusy(StoreError):
    """Other processes kept the store locked past the limit."""

    template = "{place} stayed locked by other processes for {seconds} s. Nothing was written; try again."


class StoreFailed(StoreError):
    """The operating system reported an input/output error."""

    template = (
        "{place} failed: {reason}. The write was not acknowledged and the store was reopened; "
        "check the disk, then go on with `orchestra resume`."
    )


class StoreClosed(StoreError):
    """Used after close."""

    template = "{place} is closed. Open it again."


class SnapshotTooLarge(StoreError):
    """A snapshot above its limit."""

    template = (
        "The next snapshot of run {run!r} would add {size} bytes and the limit is {limit}. "
        "Nothing was recorded; store large content as outputs."
    )


class DamageError(OrchestraError):
    """Stored bytes are not what was written."""

    exit_code = 4


class Damaged(DamageError):
    """An object, row or file that fails its check."""

    template = "{what} is damaged: {reason}. Run `orchestra verify` to see what is still whole."


class MissingObject(DamageError):
    """Something is referenced that is not there."""

    template = "{what} is missing. Run `orchestra verify` to see which snapshots need it."


class PrunedSnapshot(DamageError):
    """Retention removed the snapshot's content; its header remains."""

    exit_code = 2
    template = (
        "Snapshot {run}@{seq} was pruned: its header is kept, its state is not. "
        "The nearest kept snapshots are {nearest}."
    )


class LostCommits(DamageError):
    """Acknowledged commits are gone."""

    template = (
        "{place} lost commits {first} to {last}: they were acknowledged and are not there. {reason} "
        "Put the missing file back, or accept the loss with `orchestra store accept-loss`."
    )
