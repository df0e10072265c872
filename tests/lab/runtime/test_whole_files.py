"""Files that are written whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mqlab.whole_files import whole_file


def test_the_file_appears_at_the_end_and_the_draft_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with whole_file(path) as draft:
        draft.write_text("订单 💳", "utf-8")
        assert draft.parent == tmp_path and not path.exists()
    assert path.read_text("utf-8") == "订单 💳" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [None, ".tmp"])
def test_an_error_leaves_the_old_file_and_no_draft(tmp_path: Path, suffix: str | None) -> None:
    path = tmp_path / "manifest.json"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_file(path, suffix=suffix) as draft:
        draft.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_two_processes_write_drafts_of_their_own(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from mqlab.whole_files import whole_file\n"
    code += "with whole_file(Path(sys.argv[1])) as draft: draft.write_text(draft.name); print(draft.name)"
    names = [
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "x")], capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert len(set(names)) == 2 and (tmp_path / "x").read_text() + "\n" == names[1]
