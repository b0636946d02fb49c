"""Outputs: files that people find under `outputs/<run>/<phase>/…`."""

import mimetypes
from pathlib import Path, PurePosixPath

from orchestra.atomic import file_error, write_file
from orchestra.errors import BadName
from orchestra.ids import RunId

_YAML = "application/yaml"
_TEXT = {".md": "text/markdown", ".yaml": _YAML, ".yml": _YAML, ".toml": "application/toml"}


class OutputFolder:
    """Where the outputs of runs go."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._text = str(root)

    def of(self, run: RunId) -> Path:
        """A run's folder; it may not be there yet."""
        return self.root / run

    def workspace(self, run: RunId, task: str) -> str:
        """The scratch folder of an assignment; made when it is first used."""
        return f"{self._text}/{run}/workspace/{task}"

    def write(self, run: RunId, path: str, content: bytes) -> Path:
        """Write a file whole or not at all; raises `BadName` for a path that leads outside the folder."""
        target = self.of(run) / check_output_path(path)
        if not _resolved(target.parent, path).is_relative_to(_resolved(self.of(run), path)):
            raise BadName(what="output", name=path, rule="a path inside the run's folder")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise BadName(what="output", name=path, rule="a path that does not lie below a file") from None
        except OSError as error:
            raise file_error(error, target) from None
        write_file(target, content)
        return target


def _resolved(folder: Path, path: str) -> Path:
    """Where a folder is, or would be, when all links are followed."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError):  # links that lead to each other
        raise BadName(what="output", name=path, rule="a path that leads somewhere") from None


def check_output_path(path: str) -> str:
    """The path when it can be an output's; raises `BadName`."""
    pure = PurePosixPath(path)
    usable = path and not pure.is_absolute() and ".." not in pure.parts and path.isprintable()
    if not usable or "\\" in path or pure.parts[0] in (".", ""):
        raise BadName(what="output", name=path, rule="a relative path without '..'")
    return str(pure)


def media_type(path: str) -> str:
    """What a file holds, told by its name."""
    ending = PurePosixPath(path).suffix.lower()
    return _TEXT.get(ending) or mimetypes.guess_type(path)[0] or "application/octet-stream"
