"""Damage of configuration files is healed and announced: file, reason, and the age of what was taken instead."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mqlab import CONSUME_SUCCESS, Lab, Message
from mqlab.cli import main
from mqlab.cluster.runtime.event_loop import EventLoop
from mqlab.errors import CorruptionError
from mqlab.lab.inspector.inspector import StoreInspector
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store.config_files import ConfigFile
from mqlab.rocketmq.store.reading.config_backups import BackupWarning

OLD, NEW = '{"a":1}', '{"a":2}'
DAMAGE: dict[str, Callable[[Path], object]] = {
    "nul": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
}
REASON = {"nul": "NUL bytes", "cut": "", "empty": "it is empty", "missing": "it is missing"}


class FixedClock:
    def __init__(self) -> None:
        self.ms = 1_767_225_600_000

    def now_ms(self) -> int:
        return self.ms


def notes_of(path: Path, clock: Any = None) -> tuple[ConfigFile, list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []
    return ConfigFile(RealFiles(), str(path), clock=clock, note=lambda kind, **values: found.append(values)), found


@pytest.mark.parametrize("how", DAMAGE)
def test_what_was_taken_is_told_once_with_its_age(tmp_path: Path, how: str) -> None:
    clock, path = FixedClock(), tmp_path / "config" / "topics.json"
    file, told = notes_of(path, clock)
    for text in (OLD, NEW):
        file.save(text)
        clock.ms += 5_000
    DAMAGE[how](path)
    if path.exists():
        os.utime(path, (1_767_225_605, 1_767_225_605))
    assert file.load() == OLD
    (note,) = told
    assert (note["file"], note["taken"]) == ("config/topics.json", "config/topics.json.bak")
    assert REASON[how] in note["reason"] and note["reason"]
    assert (note["saved_ms"], note["age_ms"]) == (1_767_225_600_000, 10_000)
    assert "saved 2026-01-01 00:00:00.000" in note["text"]
    assert how == "missing" or "5 s before topics.json" in note["text"]
    assert file.load() == OLD and len(told) == 1, "healed: the backup is the file now"
    file.save(NEW)
    assert path.with_name("topics.json.bak").read_text() == OLD


def test_an_empty_file_without_a_backup_is_told(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_bytes(b"")
    file, told = notes_of(path)
    assert file.load() is None and told[0]["taken"] is None and "the defaults count" in told[0]["text"]


def test_nothing_there_is_no_damage(tmp_path: Path) -> None:
    file, told = notes_of(tmp_path / "topics.json")
    assert file.load() is None and told == []


def test_two_damaged_files_stay_an_error_at_the_second_start(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    file, _ = notes_of(path)
    for text in (OLD, NEW):
        file.save(text)
    for name in ("topics.json", "topics.json.bak"):
        (tmp_path / name).write_text("{broken")
    for _ in range(2):
        with pytest.raises(CorruptionError):
            file.load()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's store with two versions of each file of its tables."""
    base = tmp_path_factory.mktemp("world")
    with Lab(seed=2, directory=base) as lab:
        for topic in ("orders", "parcels", "old"):
            lab.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
        consumer = lab.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        consumer.subscribe("orders")
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
        consumer.start()
        producer = lab.producer("shop")
        for number in range(7):
            producer.send(Message("orders", b"%d" % number))
            producer.send(Message("orders", b"later", delay_time_level=1))
            producer.send(Message("old", b"old"))
            producer.send(Message("parcels", b"old"))
            lab.run_for("6s")
        lab.admin.delete_topic("old")
        lab.run_for("1s")
        lab.admin.delete_topic("parcels")
        lab.run_for("20s")
    return base / "broker-a"


FILES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json", "deletedTopics.json")


@pytest.mark.parametrize("file", FILES)
def test_a_broker_that_takes_a_backup_notes_it_in_the_journal(store: Path, tmp_path: Path, file: str) -> None:
    copy = tmp_path / "store"
    shutil.copytree(store, copy)
    assert (copy / "config" / f"{file}.bak").exists()
    DAMAGE["nul"](copy / "config" / file)
    with Lab(stores={"broker-a": copy}) as lab:
        told = [change.values for record in lab.journal for change in record.of("config.damaged")]
    assert [values["file"] for values in told] == [f"config/{file}"]
    assert "NUL bytes" in told[0]["reason"] and told[0]["age_ms"] >= 0 and "2026-01-01" in told[0]["text"]


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("file", FILES)
def test_inspect_looks_into_config_and_changes_nothing(store: Path, tmp_path: Path, file: str, how: str) -> None:
    copy = tmp_path / "store"
    shutil.copytree(store, copy)
    assert CliRunner().invoke(main, ["inspect", str(copy)]).exit_code == 0
    DAMAGE[how](copy / "config" / file)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    shown = CliRunner().invoke(main, ["inspect", str(copy)])
    assert shown.exit_code == 1
    line = next(line for line in shown.stdout.splitlines() if f"configuration: config/{file}:" in line)
    assert REASON[how] in line and f"config/{file}.bak is taken, saved 2026-01-01" in line
    (problem,) = json.loads(CliRunner().invoke(main, ["inspect", str(copy), "--json"]).stdout)["problems"]
    assert problem["file"] == f"config/{file}"
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_inspect_tells_a_damaged_backup_and_what_was_healed(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(store, copy)
    DAMAGE["cut"](copy / "config" / "topics.json.bak")
    assert [problem.file for problem in StoreInspector(copy).problems()] == ["config/topics.json"]
    shutil.rmtree(copy)
    shutil.copytree(store, copy)
    DAMAGE["cut"](copy / "config" / "topics.json")
    with Lab(stores={"broker-a": copy}) as lab:
        assert [problem.file for problem in lab.store().problems()] == ["config/topics.json.damaged"]


def test_admin_on_a_directory_tells_damage_and_ends_with_code_1(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(store, copy)
    whole = CliRunner().invoke(main, ["admin", "consumerProgress", str(copy), "-g", "billing"])
    DAMAGE["nul"](copy / "config" / "consumerOffset.json")
    shown = CliRunner().invoke(main, ["admin", "consumerProgress", str(copy), "-g", "billing"])
    assert (whole.exit_code, whole.stderr, shown.exit_code) == (0, "", 1)
    assert "broker-a: load config/consumerOffset.json failed: it holds" in shown.stderr
    assert "config/consumerOffset.json.bak is taken, saved 2026-01-01" in shown.stderr
    assert "progress of billing" in shown.stdout


def test_a_reader_of_configuration_warns(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(store, copy)
    DAMAGE["nul"](copy / "config" / "topics.json")
    with pytest.warns(BackupWarning, match="load config/topics.json failed: it holds .* NUL bytes"):
        assert "orders" in StoreInspector(copy).config("topics.json")["topicConfigTable"]


@pytest.mark.parametrize("how", DAMAGE)
def test_local_offsets_of_a_broadcasting_member(how: str) -> None:
    lab, got = Lab(seed=19), []
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer(
        "stock", name="stock-1", message_model="BROADCASTING", consume_from_where="CONSUME_FROM_FIRST_OFFSET"
    )
    consumer.subscribe("orders")
    consumer.on_messages(lambda messages, context: (got.extend(messages), CONSUME_SUCCESS)[1])
    consumer.start()
    producer = lab.producer("shop")
    for number in range(5):
        producer.send(Message("orders", b"%d" % number))
        lab.run_for("7s")
    lab.run_for("6s")
    lab.kill("stock-1")
    (file,) = Path(lab.directory).rglob("offsets.json")
    DAMAGE[how](file)
    lab.start("stock-1")
    lab.run_for("20s")
    told = [change.values for record in lab.journal for change in record.of("config.damaged")]
    assert [(values["file"], values["taken"]) for values in told] == [("stock/offsets.json", "stock/offsets.json.bak")]
    assert 5_000 <= told[0]["age_ms"] <= 30_000 and REASON[how] in told[0]["reason"]


def test_key_values_of_a_name_server(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    with Lab(seed=1, name_server={"kv_config_path": str(path)}) as lab:
        for value in ("1", "2"):
            lab.admin.put_kv_config("space", "key", value)
        lab.kill("nameserver-1")
        DAMAGE["nul"](path)
        lab.start("nameserver-1")
        assert lab.admin.get_kv_config("space", "key") == "1"
        told = [change.values for record in lab.journal for change in record.of("config.damaged")]
    assert len(told) == 1 and told[0]["file"].endswith("kvConfig.json")


@pytest.mark.parametrize("kind", ["config.damaged", "store.problem"])
def test_a_server_logs_damage_as_an_error(caplog: pytest.LogCaptureFixture, kind: str) -> None:
    loop = EventLoop()
    with caplog.at_level(logging.ERROR, "mqlab.nodes"):
        loop._noter("broker-a")(kind, file="config/topics.json", reason="it is empty", age_ms=5)
    loop.loop.close()
    assert [record.getMessage() for record in caplog.records] == [
        f"broker-a {kind} file=config/topics.json reason=it is empty age_ms=5"
    ]
