"""When a table goes to its file: at once, or on the grid and only when it changed."""

from __future__ import annotations

from pathlib import Path

from mqlab.rocketmq.broker.tables.config_saver import ConfigSaver
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store.config_files import ConfigFile
from mqlab.rocketmq.store.failures import Failures
from tests.rocketmq.broker.fake_clock import FakeClock


class Saved:
    """A one-line table, its saver and when it was written (ms after the start)."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.clock = FakeClock()
        self.start_ms = self.clock.now_ms()
        self.text = '"старый"'
        self.ready = True
        self.path = directory / "config" / "table.json"
        self.written: list[int] = []
        self.saver = ConfigSaver(
            self.clock,
            ConfigFile(RealFiles(), str(self.path)),
            lambda: self.text,
            self._loaded,
            Failures(self.clock, None),
            ready=lambda: self.ready,
            note=lambda kind, **values: self.written.append(self.clock.now_ms() - self.start_ms),
            **settings,  # type: ignore[arg-type]
        )

    def _loaded(self, text: str) -> None:
        self.text = text

    def change(self, text: str) -> None:
        self.text = text
        self.saver.changed()


def test_without_a_period_every_change_is_written_at_once(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.change('"новый"')
    assert saved.path.read_text(encoding="utf-8") == '"новый"' and saved.written == [0]
    saved.change('"третий"')
    assert saved.path.with_suffix(".json.bak").read_text(encoding="utf-8") == '"новый"'
    again = Saved(tmp_path)
    again.saver.load()
    assert again.text == '"третий"'


def test_with_a_period_changes_wait_for_the_next_tick(tmp_path: Path) -> None:
    saved = Saved(tmp_path, first_ms=10_000, period_ms=5_000)
    saved.saver.start()
    for at_ms in (1_000, 9_000, 10_001, 26_000):
        saved.clock.run_for(saved.start_ms + at_ms - saved.clock.now_ms())
        saved.change(f'"{at_ms}"')
    saved.clock.run_for(60_000)
    assert saved.written == [10_000, 15_000, 30_000] and saved.clock.armed() == []


def test_what_changed_before_the_start_is_written_at_the_first_tick(tmp_path: Path) -> None:
    saved = Saved(tmp_path, first_ms=10_000, period_ms=5_000)
    saved.change('"early"')
    assert saved.clock.armed() == []
    saved.saver.start()
    saved.clock.run_for(60_000)
    assert saved.written == [10_000]


def test_a_stop_writes_and_arms_nothing_more(tmp_path: Path) -> None:
    saved = Saved(tmp_path, first_ms=10_000, period_ms=5_000)
    saved.saver.start()
    saved.change('"last"')
    saved.saver.stop()
    saved.saver.changed()
    assert saved.clock.armed() == [] and saved.written == [0]


def test_a_save_waits_until_it_may(tmp_path: Path) -> None:
    saved = Saved(tmp_path, first_ms=10_000, period_ms=5_000)
    saved.saver.start()
    saved.change('"soon"')
    saved.ready = False
    saved.clock.run_for(22_000)
    assert saved.written == []
    saved.ready = True
    saved.clock.run_for(5_000)
    assert saved.written == [25_000]
    saved.change('"never"')
    saved.ready = False
    saved.saver.stop()
    saved.clock.run_for(60_000)
    assert saved.written == [25_000] and saved.clock.armed() == []


def test_nothing_saved_leaves_the_table_as_it_is(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.saver.load()
    assert saved.text == '"старый"'
