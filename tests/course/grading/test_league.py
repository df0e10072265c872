"""`mqlab league`: a class's kept brokers by promises and messages a second, each part behind the wall."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqlab.cli import main
from mqlab.course.cases.lab16.groups import GROUPS
from mqlab.course.grading.running import league
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.mybroker import OWN_PARTS
from mqlab.course.teach.keeping import FILLED, source_of, write_part
from tests.course.teach.notebook_answers import reference


@pytest.fixture
def submissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five students with one part each. Of MyGroups two promises are judged, and the timed day has six orders."""
    few = replace(GROUPS, form=replace(GROUPS.form, promises=GROUPS.form.promises[:2]))
    monkeypatch.setattr(league, "EXERCISES", (few,))
    monkeypatch.setattr(league, "ORDERS", 6)
    right = source_of(GROUPS.id, "MyGroups", reference(GROUPS.id))
    one_more = right.replace('@{queue_id}", -1)', '@{queue_id}", -1) + 1')
    assert one_more != right
    texts = {"anna": one_more, "boris": right, "chen": "import os\nos._exit(3)", "dana": "class Groups: pass"}
    for student, text in (*texts.items(), ("emil", "")):
        (tmp_path / student / "mybroker").mkdir(parents=True)
        how = "kept" if text else FILLED
        write_part(tmp_path / student / "mybroker" / "groups.py", GROUPS.id, text or OWN_PARTS["groups"], how)
    return tmp_path


def test_a_league_ranks_by_promises_and_says_what_is_wrong_first(walls: Sandbox, submissions: Path) -> None:
    said = CliRunner().invoke(main, ["league", str(submissions), "--seed", "spring"])
    assert said.exit_code == 0, said.output
    first, *others = said.stdout.splitlines()[2:]
    student, parts, kept, _, _, per_second, *why = first.split()
    assert (student, parts, kept, why) == ("boris", "1", "2", []) and int(per_second) > 0
    expected = {
        "anna": "groups: everybody knows who is there",
        "chen": "groups.py cannot be run: lab16.groups: its process",
        "dana": "groups.py does not define MyGroups",
        "emil": league.NOTHING_KEPT,
    }
    for line, (student, wrong) in zip(filter(None, others), expected.items(), strict=True):
        assert line.split()[:3] == [student, "1" if student == "anna" else "0", "0"] and wrong in line
