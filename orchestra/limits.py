"""Limits: every bound the program keeps, in one place, with the unit last in the name.

Nothing grows past its limit without a named error. Relations between limits are asserted.
"""

KB = 1024
MB = 1024 * KB

# The persistent tree and the seal.
TREE_FANOUT = 32
TREE_ITEMS = 1 << 24  # a sequence or table of more items is refused by readers
INLINE_ITEMS = 8  # at most so many items are written into their parent, without nodes of their own
SEAL_EVERY_ROWS = 32
SEAL_EVERY_PATCH_BYTES = 1 * MB
PACKED_LATER_BYTES = 16 * KB  # smaller patches and objects are compressed by the store's writer

# Values that come from agents and people.
VALUE_DEPTH = 64
VALUE_INTEGER_BITS = 1024
VALUE_ITEMS = 2_000_000  # how many things one value may be made of, counting what is in it twice twice
LARGE_VALUE_BYTES = 32 * KB  # a larger value is an object of its own and is referenced by digest
VALUE_BYTES = 100 * MB

TEXT_CHARS = 200_000  # how long one text inside a state may grow; longer ones belong into values or outputs

# What one snapshot may add to the store.
SNAPSHOT_WARN_BYTES = 500 * KB
SNAPSHOT_BYTES = 100 * MB

# What a reader accepts before it has verified anything.
NODE_BYTES = 32 * MB
NODE_ITEMS = 800_000  # things in one node, patch or header: an empty map takes one byte there and 72 here
VALUE_HEADS = 2 * VALUE_ITEMS  # the same for values, whose map keys are not counted when they are frozen
HEADER_BYTES = 1 * MB
CODEC_DEPTH = 2 * VALUE_DEPTH + 32  # a tuple is two levels of bytes: its tag and its list

# Names.
RUN_ID_CHARS = 128
NAME_CHARS = 512
NOTE_CHARS = 16_000
HEADLINE_CHARS = 200
PATH_SHOWN_CHARS = 80
HEADLINE_EVENTS = 64
FAILURES_TOLD = 100  # how many failures of a run `log` and `watch` tell with their stacks

# The writer.
WRITE_QUEUE_BYTES = 64 * MB
WRITE_BATCH_ROWS = 256
QUICK_COMMIT_SECONDS = 0.002  # a commit that takes longer must not happen on the event loop's thread
DETOUR_COMMITS = 64
FIRST_DETOUR_COMMITS = 2
LOOP_TURN_SECONDS = 0.001  # how long commits may follow one another on the loop's thread
UNSAVED_ROWS = 256
UNSAVED_BYTES = 16 * MB

# Waiting for other processes on one SQLite store.
BUSY_SECONDS = 60.0
WAL_CHECKPOINT_BYTES = 8 * MB
BALLAST_BYTES = 2 * MB

# Reading.
PAGE_ROWS = 500
PAGE_ROWS_MAX = 10_000
DIFF_CHANGES = 100_000
EXPRESSION_FUEL = 100_000
EXPRESSION_CACHE = 4096
TEMPLATE_CHARS = 200_000
EXPORT_FRAME_BYTES = 256 * MB

# Runs.
FOREACH_ITEMS = 100_000
TURN_MOVES = 1000  # how many moves one turn may make before it is committed
INDEXED_WORKFLOWS = 256
NAMES_KEPT = 4096  # how many names of assignments, and keys of their results, are kept at hand
DIFF_LINES = 200  # how many changes of a definition are listed
OUTPUT_BYTES = 16 * MB  # a larger output is kept as a file only, known by its digest
STREAM_SECONDS = 1.0  # streamed text is saved this often at most
ELAPSED_SECONDS = 1.0  # time that has passed is recorded this often at most, on its own
STREAM_HELD_CHARS = 16 * KB  # held back of a stream while it may be a key; a longer word is said
COMMAND_POLL_SECONDS = 0.5
PRESSURE_SECONDS = 5.0
SECRET_MIN_CHARS = 6  # a shorter secret is not looked for: it would be found everywhere

# Garbage.
GC_GRACE_SECONDS = 3600.0
GC_BATCH_OBJECTS = 500

assert INLINE_ITEMS <= TREE_FANOUT, "BUG: an inlined sequence must fit into one leaf"
assert LARGE_VALUE_BYTES < VALUE_BYTES <= SNAPSHOT_BYTES, "BUG: value limits out of order"
assert TREE_FANOUT * LARGE_VALUE_BYTES < NODE_BYTES, "BUG: a leaf of inline values must fit into a node"
assert TREE_FANOUT * TEXT_CHARS * 4 < NODE_BYTES, "BUG: a leaf of long texts must fit into a node"
assert SNAPSHOT_WARN_BYTES < SNAPSHOT_BYTES, "BUG: snapshot limits out of order"
assert PAGE_ROWS <= PAGE_ROWS_MAX, "BUG: page limits out of order"

# Workflow files.
WORKFLOW_BYTES = 1 * MB
WORKFLOW_NODES = 100_000
WORKFLOW_DEPTH = 64
WORKFLOW_NAME_CHARS = 64
ROLLBACK_TRIES = 100  # how often a run may go back for one assignment
WORKFLOW_PROBLEMS = 200  # how many mistakes of a file are listed
AGENT_FILE_BYTES = 4 * MB
AGENT_OPTIONS_KEPT = 1024  # options of agents kept as objects, so that they are not read for every attempt
EXPRESSION_CHARS = 2_000  # minijinja recurses: 2,200 signs in a row end a process with a stack of 1 MB
TEMPLATE_BLOCKS = 200  # how many `{%` and `{{` one template may have; minijinja recurses here too
TEMPLATE_GROWTH = 100_000  # how much longer a text may become by being handed on from block to block
TEXT_REPEATS = 10_000  # how often `*` may repeat a text in a workflow file
DURATION_SECONDS = 366 * 24 * 3600  # a longer time limit or interval is taken for a mistake

# Agents.
AGENT_THREADS = 32  # how many plain functions may work at once; more wait for a thread
AGENT_GRACE_SECONDS = 5.0  # how long a cancelled agent may take to stop before it is given up
LEFTOVER_SECONDS = 2.0  # the wait for a killed program that a dead process left behind
AGENT_STACK_BYTES = 8 * KB
AGENT_STDERR_BYTES = 8 * KB  # how much of a program's standard error is kept: its end
AGENT_MESSAGE_CHARS = 4_000
AGENT_GROUP_ERRORS = 20  # how many errors of one exception group are named
AGENT_LINE_BYTES = 16 * MB
AGENT_LINE_SHOWN_CHARS = 200
AGENT_OUTPUT_BYTES = 512 * MB  # a program that writes more to one of its two outputs is stopped
AGENT_INLINE_BYTES = 1 * MB  # larger content travels from a process as a file in its workspace
AGENT_COUNT = 10**15  # how much one report may count of anything; sums stay far below what can be stored
AGENT_CALLS = 64  # how many unanswered calls one program may have

# Language models.
AGENT_TEXT_BYTES = 1 * MB  # a Markdown agent
FRONT_MATTER_BYTES = 128 * KB
SKILL_FILE_BYTES = 256 * KB  # what a model reads at once of a skill
SKILL_FILES = 100  # how many files of a skill are offered
SKILL_DEPTH = 4
SKILL_DESCRIPTION_CHARS = 1_024
CASSETTE_BYTES = 256 * MB
CASSETTE_DIFF_LINES = 12  # how much is shown of a prompt that has changed
CASSETTE_DIFF_CHARS = 160
CASSETTE_COMPARED_CHARS = 20_000  # how much of two prompts is compared
CASSETTE_COMPARED_PROMPTS = 20
LOCAL_MODEL_TOKENS = 768  # the longest answer of the local model, unless another length is asked for
LOCAL_MODEL_THREADS = 4
LOCAL_MODEL_TEXT_CHARS = 120  # of one text, where a schema sets no limit
LOCAL_MODEL_ITEMS = 3
SKILLS_ABOVE = 8  # how many folders above a workflow are looked through for skills
CALIBRATION_RESULTS = 20  # judged results, below which their share of accepted ones says little
LLM_STREAM_SECONDS = 1.0  # how long streamed text is gathered before it is put on the record
LLM_RETRIES = 4  # how often a provider that is down is asked again before the next model, or failure
LLM_BACKOFF_SECONDS = 2.0  # before the first of them; doubled each time
LLM_BACKOFF_MOST_SECONDS = 60.0
LLM_WAIT_MOST_SECONDS = 86_400.0  # a provider that asks for more is given up for now
LLM_COMPACTION_GAIN = 4  # a conversation is compacted when this part of the mark goes away, as a divisor
LLM_STEPS = 50  # requests of one conversation in one round, unless its limits say more
LLM_TOOL_SECONDS = 120.0  # of one tool call
LLM_TOOL_CHARS = 50_000  # of a tool's result that a model is shown
ERRAND_DEPTH = 4  # how many assignments may wait for one another
ERRANDS = 64  # that one assignment may give to one agent in a round

assert FRONT_MATTER_BYTES < AGENT_TEXT_BYTES <= AGENT_FILE_BYTES, "BUG: limits of agent files out of order"
assert AGENT_INLINE_BYTES * 2 < AGENT_LINE_BYTES < AGENT_OUTPUT_BYTES, "BUG: agent limits out of order"

# The process.
HEAP_NEW_OBJECTS = 5_000  # new objects before Python looks for garbage; by default 700

# Telemetry.
TELEMETRY_SPANS = 20_000  # how many spans may wait to be written before newer ones are left out
TELEMETRY_QUEUE = 10_000  # how many items may wait for a thread of telemetry before newer ones are left out
TELEMETRY_LINGER_SECONDS = 0.5  # how long items are gathered before they are worked on
TELEMETRY_HURRY = 2_000  # how many are worked on at once, without waiting for more
TELEMETRY_CLOSE_SECONDS = 2.0  # how long the end of a process waits for a collector that does not answer
TELEMETRY_EXPORT_SPANS = 512
TELEMETRY_EXPORT_SECONDS = 10.0  # how often metrics of the process are sent, and how long sending may take
TELEMETRY_METRICS_SECONDS = 60.0  # how often the metrics of a run that goes on are written
TELEMETRY_STORE_FILES = 20_000  # how many files of a store are looked at to tell its size
TELEMETRY_READ_BYTES = 64 * MB  # how much of one metrics file is read back
TELEMETRY_CONTENT_CHARS = 8 * KB  # of one message or result in a span, where content is asked for
SPAN_EVENTS = 128
INTERRUPTED_ROWS = 2_000  # how far back the beginning of an interrupted stretch of a run is looked for
JOURNAL_RUNS = 4096  # of how many runs it is remembered where their journals end
JOURNAL_TAIL_BYTES = 4 * MB  # how much of a journal's end is read to find its last whole line

# The checkup.
CHECKUP_DISK_FAIL_BYTES = 100 * MB
CHECKUP_DISK_WARN_BYTES = 1024 * MB
CHECKUP_HEADS = 500  # of how many runs the newest snapshot is looked at
CHECKUP_SKEW_SECONDS = 300.0
CHECKUP_CONNECT_SECONDS = 2.0

assert CHECKUP_DISK_FAIL_BYTES < CHECKUP_DISK_WARN_BYTES, "BUG: checkup limits out of order"

# The snapshot browser.
WEB_COLLECTION_ITEMS = 1000  # how many entries of one collection are sent at once, unless fewer are asked for
WEB_TEXT_CHARS = 4096  # a longer text inside a state is cut, and sent whole when its path is asked for
WEB_WHOLE_TEXT_CHARS = 5 * MB  # how much of one text is sent as JSON; a longer one can be had as a file
WEB_MESSAGE_CHARS = 16 * KB  # how much of one text of a message is shown in a conversation
WEB_MESSAGES = 60  # how many messages of a conversation are sent at once, unless more are asked for
WEB_MESSAGES_MAX = 500
WEB_STATE_BYTES = 256 * KB
WEB_STATE_BYTES_MAX = 16 * MB
WEB_CHANGE_BYTES = 16 * KB  # how much is shown of what one change put there, or took away
WEB_DIFF_CHANGES = 2000
WEB_DIFF_CHANGES_MAX = 20_000
WEB_RUNS = 50
WEB_RUNS_MAX = 500
WEB_COUNTED_RUNS = 10_000  # among how many runs those of each status are counted
WEB_SPARK_POINTS = 32
WEB_HEADLINE_ROWS = 500
WEB_OUTLINE_ROWS = 20_000
WEB_OUTLINES = 16  # of how many runs the outline is kept in memory
WEB_SEARCH_CHARS = 500
WEB_SEARCH_HITS = 200
WEB_SEARCH_HITS_MAX = 5000
WEB_EXCERPT_CHARS = 60
WEB_PATH_CHARS = 8 * KB
WEB_BODY_BYTES = 1 * MB
WEB_BODY_SECONDS = 10.0
WEB_HEADER_BYTES = 32 * KB
WEB_HEADER_SECONDS = 10.0  # how long a client may take to say what it wants
WEB_SEND_SECONDS = 30.0  # how long a client may take in nothing of what it is sent
WEB_IDLE_SECONDS = 30.0
WEB_CONNECTIONS = 256
WEB_THREADS = 6  # how many answers are worked out at once; further ones wait
WEB_TURN_SECONDS = 0.0005  # how long a thread of the browser works before another gets its turn
WEB_WAITING = 64  # how many may wait before others are turned away
WEB_LISTENERS = 64
WEB_LISTENER_EVENTS = 2000  # events that may wait for one listener before it is cut off
WEB_FEED_SECONDS = 0.1
WEB_FEED_ROWS = 500
WEB_HEARTBEAT_SECONDS = 15.0
WEB_COMPRESS_BYTES = 2 * KB
WEB_ORDER_SECONDS = 15.0  # how long an order may take until the process that plays the run has taken it in

assert WEB_TEXT_CHARS < WEB_STATE_BYTES <= WEB_STATE_BYTES_MAX, "BUG: limits of the browser out of order"
assert WEB_LISTENERS < WEB_CONNECTIONS, "BUG: listeners must leave room for questions"
assert WEB_FEED_ROWS <= WEB_LISTENER_EVENTS, "BUG: a listener must have room for what is read at once"

# The audit.
AUDIT_IDLE_SECONDS = 1.0  # what was read is noted once nothing more was read for so long
AUDIT_LATEST_SECONDS = 10.0  # and after this time in any case
AUDIT_LOCK_SECONDS = 5.0
AUDIT_LINE_BYTES = 64 * KB
AUDIT_WHAT_CHARS = 200

assert AUDIT_IDLE_SECONDS < AUDIT_LATEST_SECONDS, "BUG: limits of the audit out of order"
assert 8 * AUDIT_WHAT_CHARS + 4 * KB < AUDIT_LINE_BYTES, "BUG: a line of the audit must have room"

# The bundle: a run in one page.
BUNDLE_VALUE_BYTES = 256 * KB  # a single value above this is only named
BUNDLE_STATE_BYTES = 128 * MB  # how much all states may take as JSON, before they are compressed
BUNDLE_FILE_BYTES = 64 * MB
BUNDLE_OUTPUT_BYTES = 1 * MB  # a file that the run made is put in up to this size

assert BUNDLE_VALUE_BYTES < BUNDLE_STATE_BYTES, "BUG: limits of a bundle out of order"
