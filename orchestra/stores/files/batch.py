"""One commit of many runs, on its way to the disk."""

import attrs

from orchestra.ids import Digest, RunId


@attrs.define
class Batch:
    """What is to be written, and what is needed to take it back."""

    last_no: int  # before this batch
    objects: dict[Digest, bytes] = attrs.field(factory=dict)
    made: list[Digest] = attrs.field(factory=list)  # objects that were not there before
    frames: dict[RunId, list[bytes]] = attrs.field(factory=dict)
    sizes: dict[RunId, list[int]] = attrs.field(factory=dict)  # of the logs' segments before this batch

    def size(self) -> int:
        """About how much room it takes."""
        rows = sum(len(frame) for frames in self.frames.values() for frame in frames)
        return rows + sum(len(data) for data in self.objects.values())
