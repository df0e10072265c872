"""`mqlab sim --mine`: a right broker keeps its promises under random faults, a wrong one is named, and shrunk."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from mqlab.course.widgets.boards.time_machine.recording import StoryRecording
from mqlab.lab.simulation import draw, on_own_parts, run, shrink
from tests.lab.parts.brokers import dicts_and_lists, of_files, rocketmq_shape

WRONG = "\n\nclass MyGroups(MyGroups):\n    def save(self):\n        pass\n"


def kept(folder: Path, broker: object, more: str = "") -> None:
    home = folder / "mybroker"
    home.mkdir()
    text = inspect.getsource(broker)  # type: ignore[arg-type]
    for name in ("store", "pulls", "groups", "retries", "handlers"):
        (home / f"{name}.py").write_text(text + more * (name == "groups"), "utf-8")


@pytest.mark.parametrize("broker", [rocketmq_shape, dicts_and_lists, of_files], ids=lambda one: one.__name__[25:])
def test_a_right_broker_keeps_every_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broker: object) -> None:
    kept(tmp_path, broker)
    monkeypatch.chdir(tmp_path)
    for seed in range(3):
        assert run(on_own_parts(draw(seed))).wrong == []


def test_what_broke_can_be_looked_at_in_the_time_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path, rocketmq_shape, WRONG.replace("save", "commit").replace("(self)", "(self, *of_a_group)"))
    monkeypatch.chdir(tmp_path)
    plans = (on_own_parts(draw(seed)) for seed in range(20))
    broken = next(plan for plan in plans if run(plan).wrong)
    recording = StoryRecording(broken.story, **broken.settings)
    assert "MyGroups.committed" in recording.error and recording.lab is not None


@pytest.mark.long
def test_what_breaks_a_wrong_broker_is_named_and_made_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path, rocketmq_shape, WRONG)
    monkeypatch.chdir(tmp_path)
    outcomes = (run(on_own_parts(draw(seed))) for seed in range(40))
    failed = next(outcome for outcome in outcomes if outcome.wrong)
    assert failed.wrong[0].kind == "PART" and "What was saved" in failed.wrong[0].what
    small = shrink(failed.plan, lambda plan: any(wrong.kind == "PART" for wrong in run(plan).wrong))
    assert len(small.events) < len(failed.plan.events)
