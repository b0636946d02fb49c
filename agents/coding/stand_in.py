"""Stands in for a coding agent: it speaks as they do, and does nothing but say what it was told."""

import json
import sys
import uuid

session, told = (sys.argv[2] if sys.argv[1:2] == ["--resume"] else str(uuid.uuid4())), sys.stdin.read()
print(json.dumps({"type": "system", "session_id": session}), flush=True)
answer = f"{'I go on' if len(sys.argv) > 1 else 'I begin'}: {' '.join(told.split())[:200]}"
print(
    json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": answer}]}}), flush=True
)
print(
    json.dumps(
        {"type": "result", "result": answer, "usage": {"input_tokens": len(told) // 4, "output_tokens": 9}}
    )
)
