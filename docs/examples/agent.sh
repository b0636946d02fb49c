#!/usr/bin/env bash
# An agent in bash: counts the lines of the text files in the project. It gets along without jq, so it picks the one
# value it needs out of the assignment with sed; use jq for more.
set -euo pipefail

say() { printf '%s\n' "$1"; }

IFS= read -r assignment
attempt=$(sed -E 's/.*"attempt": ([0-9]+).*/\1/' <<<"$assignment")
say '{"type": "emitted", "text": "attempt '"$attempt"'\n"}'

lines=$(cat -- *.txt | wc -l | tr -d ' ')

# A call has an id; its answer says that the run has it.
say '{"type": "saved", "id": 1, "private": {"lines": '"$lines"'}, "progress": 0.5}'
IFS= read -r answer
case $answer in
  *'"type": "answer"'*) ;;
  *) say '{"type": "failed", "message": "the milestone was not taken"}'; exit 0 ;;
esac

say '{"type": "result", "output": {"lines": '"$lines"'}, "confidence": 0.9}'
