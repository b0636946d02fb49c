"""How long the review of a large project takes, here and in another checkout, in turns.

    python -m benchmarks.review --against ../other-checkout

The project is made of the first sources of packages that are installed here, so it is the same for both. Each
round runs `orchestra run configs/code_review.yaml` once in each checkout; the best of the rounds counts.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parents[1]
FILES = 800
PACKAGES = (
    *("attr", "anyio", "httpx", "httpcore", "starlette", "fastapi", "rich", "pydantic", "click", "cyclopts"),
    *("uvicorn", "hypothesis", "_pytest", "requests", "urllib3", "werkzeug", "pip", "mypy", "opentelemetry"),
)
MANIFEST = '[project]\nname = "many"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["idna>=3"]\n'


def make_project(folder: Path, count: int) -> int:
    """Copy sources of installed packages; gives how many there were."""
    installed = Path(sysconfig.get_path("purelib"))
    roots = [Path(path) for path in sys.path if path.endswith("site-packages")] or [installed]
    paths = [
        (root, path) for name in PACKAGES for root in roots for path in sorted((root / name).rglob("*.py"))
    ]
    for root, path in paths[:count]:
        target = folder / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    (folder / "pyproject.toml").write_text(MANIFEST, encoding="utf-8")
    return len(paths[:count])


def seconds_of(checkout: Path, project: Path, outputs: Path) -> float:
    """How long one review takes, from start to end of the program."""
    config = str(checkout / "configs" / "code_review.yaml")
    command = [sys.executable, "-m", "orchestra", "run", config, "--input", f"path={project}"]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "NO_COLOR": "1"}
    begin = time.perf_counter()
    subprocess.run(command, cwd=outputs, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def measure(checkouts: dict[str, Path], files: int, rounds: int) -> dict[str, float]:
    """The best time of each checkout, measured in turns."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        count = make_project(project, files)
        print(f"{count} files, best of {rounds}")
        times: dict[str, list[float]] = {name: [] for name in checkouts}
        for number in range(rounds):
            for name, checkout in checkouts.items():
                outputs = Path(folder, f"{name}-{number}")
                outputs.mkdir()
                times[name].append(seconds_of(checkout, project, outputs))
                print(f"  {name}: {times[name][-1]:.1f} s", flush=True)
    return {name: min(taken) for name, taken in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    checkouts = {"here": HERE, **({"there": given.against.resolve()} if given.against else {})}
    best = measure(checkouts, given.files, given.rounds)
    for name, taken in best.items():
        print(f"{name}: {taken:.1f} s")
    if given.against:
        print(f"here takes {best['here'] / best['there']:.2f} of the time there")


if __name__ == "__main__":
    main()
