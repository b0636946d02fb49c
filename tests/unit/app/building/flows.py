"""A workflow file with everything in it, and its agents."""

from pathlib import Path

RICH = """
name: rich
description: All that a file can say.
inputs:
  items: {type: list, default: [1, 2], help: what to look at}
  mode: {choices: [mild, strict], default: mild}
  token: {type: text, secret: true, required: false}
context:
  found: append
  total: {reducer: sum, initial: 1}
agents:
  one:
    {path: one.py, attribute: other, isolation: process, description: d, with: {deep: 1}, environment: HOME}
  two: {command: [sh, -c, "true"], description: shells}
  three: three.py
policy:
  confidence: {threshold: 0.7, watch: [0.5, 0.7], rollback_factor: 0.8}
  retry: {attempts: 2, backoff: 10ms, max_backoff: 1s, timeout: null}
  recovery:
    {auto: false, max_recoveries: 1, timeout: 1m, fallback_to_previous: false, on_failure: [restart, fail]}
  concurrency: 3
  max_iterations: 9
  grace: 2s
  limits: {requests: 9, cost: 1.5, on_limit: ask}
prices:
  "openai:*": {input: 1.5, output: 2}
  "mistral:x": {input: 1, output: 2, cache_read: 0.5, cache_write: 3}
phases:
  look:
    description: Look at each.
    specialists:
      one: {task: "Look at {{ item }}", foreach: inputs.items, into: found, threshold: 0.6, breakpoint: true}
      again:
        {agent: one, needs: one, when: inputs.mode == "mild", retry: {attempts: 1, timeout: 3s}, outputs: a}
      three:
        {task: Look at all, on_failure: [restart, substitute], substitute: two, into: total, when: false}
    evaluate:
      {agent: three, task: J, threshold: 0.9, rubric: {proof: 2, reach: 1}, revise: 2, retry: {attempts: 5}}
    on_low_confidence: [{spawn: three, agent: two, max: 2}, {ask: "Go on?", choices: [go, stop]}, proceed]
    next: [{to: look, when: 'evaluation.verdict == "revise" and visits.look < 3'}, {to: rest}]
    max_visits: 3
    timeout: 10m
    limits: {tokens: 100, tool_calls: 3, seconds: 4}
    breakpoint: true
  rest:
    specialists: {two: Rest}
  idle:
    next: end
"""


def write_agents(folder: Path) -> None:
    """Put the agents of `RICH` into a folder."""
    for name in ("one.py", "three.py"):
        (folder / name).write_text("async def agent(ctx): ...\nother = agent\n")
