"""Facts about where runs are executed, which every run keeps."""

import platform
import subprocess
import sys
from pathlib import Path

import anyio.to_thread

from orchestra.model.records import Environment
from orchestra.version import VERSION


class EnvironmentProbe:
    """The facts about this process and a project, found out when they are first asked for."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._found: Environment | None = None

    async def facts(self) -> Environment:
        """The facts."""
        if self._found is None:
            self._found = await anyio.to_thread.run_sync(environment_of, self._project)
        return self._found


def environment_of(project: Path) -> Environment:
    """The facts about this process and the project; asks git, so it may take a moment."""
    return Environment(
        version=VERSION,
        python=platform.python_version(),
        platform=sys.platform,
        working_dir=str(project),
        git_commit=_git_commit(project),
    )


def _git_commit(project: Path) -> str | None:
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=project, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
