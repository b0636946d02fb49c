"""Settings of the engine. `docs/reference/settings.md` describes each."""

import attrs

from orchestra.errors import BadSetting
from orchestra.model.workflow import MINUTE_US


@attrs.frozen(kw_only=True)
class EngineSettings:
    """How the loop around a run behaves."""

    every_us: int = 10 * MINUTE_US  # a periodic snapshot while anything is active; 0 is off
    memory_share: float = 0.9  # of the memory there is: from here on a snapshot is taken
    process_concurrency: int = 64  # assignments of all runs of one process at once
    outputs: str = "outputs"  # the folder that runs write into
    telemetry: bool = True  # spans and metrics of runs, as files and to the collector that is named
    telemetry_content: bool = False  # whether spans tell what was said to and by models and tools
    events: bool = True  # a journal of each run, a line for every turn
    json_files: bool = False  # marked snapshots as readable files beside what the run writes

    def __attrs_post_init__(self) -> None:
        if self.every_us < 0:
            raise BadSetting(setting="checkpoint.every", value=self.every_us, reason="it cannot be negative")
        if not 0 < self.memory_share <= 1:
            reason = "it is a share, more than 0 and at most 1"
            raise BadSetting(setting="checkpoint.memory_share", value=self.memory_share, reason=reason)
        if self.process_concurrency < 1:
            reason, value = "at least one assignment must be able to run", self.process_concurrency
            raise BadSetting(setting="performance.process_concurrency", value=value, reason=reason)
