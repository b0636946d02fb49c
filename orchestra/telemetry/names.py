"""Names of spans, attributes and instruments. `docs/reference/telemetry.md` says what each means."""

from typing import Final

# Spans, after the GenAI conventions where there is one.
INVOKE_WORKFLOW: Final = "invoke_workflow"
INVOKE_AGENT: Final = "invoke_agent"
PHASE: Final = "phase"
EVALUATION: Final = "evaluation"

# Events inside spans.
CHECKPOINT_SAVED: Final = "checkpoint.saved"
CHECKPOINT_FAILED: Final = "checkpoint.failed"
DECISION_MADE: Final = "decision.made"
WAIT_OPENED: Final = "wait.opened"
WAIT_CLOSED: Final = "wait.closed"
RUN_ROLLED_BACK: Final = "run.rolled_back"
EVALUATION_RESULT: Final = "gen_ai.evaluation.result"
EXCEPTION: Final = "exception"

# Attributes of the conventions.
OPERATION: Final = "gen_ai.operation.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
AGENT_NAME: Final = "gen_ai.agent.name"
MODEL: Final = "gen_ai.request.model"
TOKENS_IN: Final = "gen_ai.usage.input_tokens"
TOKENS_OUT: Final = "gen_ai.usage.output_tokens"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
ERROR_TYPE: Final = "error.type"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"

# Attributes of our own.
RUN: Final = "orchestra.run"
WORKFLOW: Final = "orchestra.workflow"
SEQ: Final = "orchestra.seq"
GENERATION: Final = "orchestra.generation"
VISIT: Final = "orchestra.visit"
PHASE_ID: Final = "orchestra.phase"
ROUND: Final = "orchestra.round"
TASK: Final = "orchestra.task"
ATTEMPT: Final = "orchestra.attempt"
ROLE: Final = "orchestra.role"
STATUS: Final = "orchestra.status"
CONFIDENCE: Final = "orchestra.confidence"
VERDICT: Final = "orchestra.verdict"
SCORE: Final = "orchestra.score"
API_CALLS: Final = "orchestra.api_calls"
COST: Final = "orchestra.cost_micros"
RECOVERED: Final = "orchestra.recovered"
RECOVERIES: Final = "orchestra.recoveries"
ROLLBACKS: Final = "orchestra.rollbacks"
AGENT: Final = "orchestra.agent"
DECISION: Final = "orchestra.decision"
WAIT: Final = "orchestra.wait"
TO_SEQ: Final = "orchestra.to_seq"
SIZE: Final = "orchestra.checkpoint.size"
DURATION: Final = "orchestra.checkpoint.duration"
TRIGGERS: Final = "orchestra.checkpoint.triggers"
LINK: Final = "orchestra.link"
OUTCOME: Final = "orchestra.outcome"

# Instruments.
WRITE_DURATION: Final = "orchestra.checkpoint.write_duration"
CHECKPOINT_SIZE: Final = "orchestra.checkpoint.size"
CHECKPOINT_COUNT: Final = "orchestra.checkpoint.count"
CHECKPOINT_FREQUENCY: Final = "orchestra.checkpoint.frequency"
RECOVERY_COUNT: Final = "orchestra.recovery.count"
RECOVERY_SUCCESS_RATE: Final = "orchestra.recovery.success_rate"
STORAGE_USAGE: Final = "orchestra.storage.usage"
INSTRUMENTS: Final = (
    WRITE_DURATION, CHECKPOINT_SIZE, CHECKPOINT_COUNT, CHECKPOINT_FREQUENCY, RECOVERY_COUNT,
    RECOVERY_SUCCESS_RATE, STORAGE_USAGE,
)  # fmt: skip

SERVICE: Final = "orchestra"  # the name of the service and of the instrumentation scope
FILE: Final = "otlp.jsonl"
FOLDER: Final = "telemetry"
JOURNAL_FILE: Final = "events.jsonl"
