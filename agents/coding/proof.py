"""Proof: runs the check of the project, its tests for example, and tells what came of it."""

import subprocess
from typing import Any

SECONDS = 600
SHOWN_CHARS = 4000


def agent(ctx: Any) -> dict[str, Any]:
    """Run the command in the input `check`, in the input `folder`."""
    command, folder = ctx.inputs["check"], ctx.project / str(ctx.inputs.get("folder") or ".")
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {"passes": False, "printed": f"`{command}` took longer than {SECONDS} s."}
    printed = (done.stdout + done.stderr)[-SHOWN_CHARS:].strip()
    return {
        "passes": done.returncode == 0,
        "printed": f"`{command}` ended with {done.returncode}:\n\n{printed}",
    }
