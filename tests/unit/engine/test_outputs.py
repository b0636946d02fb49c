"""Outputs lie in the folder of their run, and what cannot be one leaves nothing behind."""

from pathlib import Path

import pytest

from orchestra.engine.outputs import OutputFolder
from orchestra.errors import BadName
from orchestra.ids import RunId

RUN = RunId("run")


def test_an_output_through_a_link_makes_no_folder_outside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "outputs" / RUN).mkdir(parents=True)
    (tmp_path / "outputs" / RUN / "link").symlink_to(outside)
    with pytest.raises(BadName, match="inside the run's folder"):
        OutputFolder(tmp_path / "outputs").write(RUN, "link/deep/a.md", b"x")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("path", ["d/e", "d/e/f"])
def test_an_output_below_a_file_is_refused_by_name(tmp_path: Path, path: str) -> None:
    folder = OutputFolder(tmp_path)
    folder.write(RUN, "d", b"x")
    with pytest.raises(BadName, match="below a file"):
        folder.write(RUN, path, b"y")
    assert (tmp_path / RUN / "d").read_bytes() == b"x"


def test_an_output_behind_links_that_lead_to_each_other_is_refused(tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir()
    (tmp_path / RUN / "one").symlink_to("two")
    (tmp_path / RUN / "two").symlink_to("one")
    with pytest.raises(BadName):
        OutputFolder(tmp_path).write(RUN, "one/a.md", b"x")
