"""The built-in tools for files: bound to a folder, and to what is shown of it."""

from pathlib import Path

import pytest

from orchestra.agents.llm.files import file_tools


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    for name in ("a.py", ".env", ".git/config", "pkg/__pycache__/b.pyc", "pkg/b.py"):
        (inside / name).parent.mkdir(parents=True, exist_ok=True)
        (inside / name).write_text(f"key = {name}\n")
    (tmp_path / "outside.py").write_text("key = outside\n")
    (inside / "link.py").symlink_to(tmp_path / "outside.py")
    return inside


def test_a_folder_to_read_shows_nothing_hidden_and_takes_nothing(folder: Path) -> None:
    tools = file_tools(folder, read_only=True)
    assert sorted(tools) == ["list_files", "read_file", "search_files"]
    assert tools["list_files"]() == ["a.py", "pkg/b.py"]
    assert tools["search_files"]("key") == ["a.py:1: key = a.py", "pkg/b.py:1: key = pkg/b.py"]
    for hidden in (".env", ".git/config", "pkg/../.env"):
        with pytest.raises(ValueError, match="is hidden"):
            tools["read_file"](hidden)


def test_a_workspace_is_shown_whole_but_for_links_that_lead_out(folder: Path) -> None:
    tools = file_tools(folder)
    assert {".env", "pkg/__pycache__/b.pyc"} <= set(tools["list_files"]())
    assert "link.py" not in tools["list_files"]()
    assert not any("outside" in line for line in tools["search_files"]("key"))
    with pytest.raises(ValueError, match="outside the workspace"):
        tools["read_file"]("link.py")
