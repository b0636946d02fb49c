"""The folder that runs write into."""

import os
from pathlib import Path
from typing import Final

from orchestra.cli.store import SETTINGS_FILE

# As in the settings, which cost too much to load for a look; a test keeps them equal.
OUTPUTS_VARIABLE: Final = "ORCHESTRA_PERFORMANCE_OUTPUTS"
DEFAULT_OUTPUTS: Final = "outputs"


def outputs_folder() -> str:
    """The folder that runs write into, as the settings say."""
    if not Path(SETTINGS_FILE).exists() and OUTPUTS_VARIABLE not in os.environ:
        return DEFAULT_OUTPUTS
    from orchestra.cli.play.settings import settings_in_force

    return settings_in_force().engine.outputs
