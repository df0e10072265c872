"""`mqlab cat`, `inspect` and `recover` as a shell sees them: stdout, stderr, exit codes, and untouched files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqlab.cli import main
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message

SIZES = {
    "mapped_file_size_commit_log": 2048,
    "mapped_file_size_consume_queue": 200,
    "max_hash_slot_num": 20,
    "max_index_num": 30,
}


@pytest.fixture
def directory(tmp_path):
    """A store of 20 messages in two topics, closed."""
    with MessageStore.open(str(tmp_path / "store"), **SIZES) as store:
        for number in range(20):
            topic, queue = ("orders", number % 2) if number % 4 else ("платежи", 0)
            body = f"заказ 订单 😀 {number}".encode()
            name = topic.replace("платежи", "payments")
            message = Message(name, body, "paid", f"key-{number}", properties={"颜色": "红"})
            message.properties["UNIQ_KEY"] = f"7F{number:04d}"
            store.put(message, queue_id=queue)
    return tmp_path / "store"


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def lines(result):
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def state_of(directory):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.rglob("*") if path.is_file()}


def test_cat_as_json(directory):
    before = state_of(directory)
    rows = lines(run("cat", directory, "--json"))
    assert [row["physicalOffset"] for row in rows] == sorted(row["physicalOffset"] for row in rows)
    assert len(rows) == 20
    assert list(rows[0]) == [
        "physicalOffset",
        "size",
        "magic",
        "topic",
        "queueId",
        "queueOffset",
        "flag",
        "sysFlag",
        "bodyCrc",
        "bornTimestamp",
        "bornHost",
        "storeTimestamp",
        "storeHost",
        "reconsumeTimes",
        "preparedTransactionOffset",
        "bodyLength",
        "bodyHex",
        "properties",
        "offsetMsgId",
        "unitSha256",
    ]
    assert bytes.fromhex(rows[0]["bodyHex"]).decode() == "заказ 订单 😀 0"
    assert rows[0]["properties"]["颜色"] == "红"
    assert state_of(directory) == before


def test_cat_choices(directory):
    all_rows = lines(run("cat", directory, "--json"))
    assert lines(run("cat", directory, "--json", "--topic", "payments")) == all_rows[::4]
    assert lines(run("cat", directory, "--json", "--topic", "orders", "--queue", 0)) == all_rows[2::4]
    assert lines(run("cat", directory, "--json", "--key", "key-7")) == [all_rows[7]]
    assert lines(run("cat", directory, "--json", "--count", 2)) == all_rows[:2]
    assert lines(run("cat", directory, "--json", "--count", -2)) == all_rows[-2:]
    assert lines(run("cat", directory, "--json", "--topic", "orders", "--queue", 1, "--offset", 8)) == all_rows[17:20:2]
    middle = all_rows[10]["storeTimestamp"]
    assert lines(run("cat", directory, "--json", "--from", middle)) == [
        row for row in all_rows if row["storeTimestamp"] >= middle
    ]
    assert lines(run("cat", directory, "--json", "--to", middle - 1)) == [
        row for row in all_rows if row["storeTimestamp"] < middle
    ]


def test_cat_by_format(directory):
    result = run("cat", directory, "--count", 1, "-f", r"%t|%p|%o|%k|%K|%g|%u|%S|%s|%h|100%%\x41\t%P\n")
    assert result.stdout == (
        "payments|0|0|key-0|5|paid|7F0000|24|заказ 订单 😀 0|"
        "颜色=红,TAGS=paid,KEYS=key-0,WAIT=true,UNIQ_KEY=7F0000|100%A\t0\n"
    )
    assert run("cat", directory, "--count", 1, "-f", "%R").stdout_bytes == b"\0\0\0\x18"


def test_cat_for_people(directory):
    result = run("cat", directory, "--count", -1)
    assert "orders[1]@9  tags=paid  keys=key-19  заказ 订单 😀 19" in result.stdout
    nothing = run("cat", directory, "--topic", "order")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "topics: orders, payments" in nothing.stderr


def test_inspect(directory):
    before = state_of(directory)
    (summary,) = lines(run("inspect", directory, "--json"))
    assert summary["minPhysicalOffset"] == 0 and not summary["abort"] and summary["problems"] == []
    assert summary["queues"] == [
        {"topic": "orders", "queueId": 0, "minOffset": 0, "maxOffset": 5},
        {"topic": "orders", "queueId": 1, "minOffset": 0, "maxOffset": 10},
        {"topic": "payments", "queueId": 0, "minOffset": 0, "maxOffset": 5},
    ]
    assert summary["sizes"] == {"commitLog": 2048, "consumeQueue": 200, "hashSlotNum": 20, "indexNum": 30}
    assert summary["checkpoint"]["confirmPhyOffset"] == 0
    assert [blank["physicalOffset"] + blank["size"] for blank in summary["blanks"]] == [2048]
    assert [index["entries"] for index in summary["index"]] == [29, 11]
    text = run("inspect", directory)
    assert text.exit_code == 0 and "payments" in text.stdout and "closed" in text.stdout
    assert state_of(directory) == before


def damage(directory: Path) -> None:
    log = directory / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[95] ^= 1
    log.write_bytes(data)


def test_damage_is_exit_code_1_and_told_on_stderr(directory):
    damage(directory)
    cat = run("cat", directory, "--json")
    assert cat.exit_code == 1 and len(cat.stdout.splitlines()) == 20
    assert "CRC-32" in cat.stderr
    inspected = run("inspect", directory, "--json")
    assert inspected.exit_code == 1
    assert [problem["kind"] for problem in json.loads(inspected.stdout)["problems"]] == ["check sum"]


def test_recover_cuts_and_rebuilds(directory):
    with MessageStore.open(str(directory)) as store:
        end = store.max_physical_offset
        store.put(Message("orders", "потеряно 😀".encode()))
        crashed = directory.parent / "crashed"
        shutil.copytree(directory, crashed)
    shutil.rmtree(crashed / "consumequeue")
    log = crashed / "commitlog" / f"{2048:020d}"
    data = bytearray(log.read_bytes())
    data[end - 2048 + 95] ^= 1  # in the last message's body
    log.write_bytes(data)
    result = run("recover", crashed, "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["maxPhysicalOffset"] == end and not summary["abort"]
    assert summary["recovery"]["cleanExit"] is False and summary["recovery"]["unitsDispatched"] == 20
    assert [queue["maxOffset"] for queue in summary["queues"]] == [5, 10, 5]
    again = run("recover", crashed)
    assert again.exit_code == 0 and "problems: none" in again.stdout


def test_recover_refuses_a_store_that_is_open(directory):
    with MessageStore.open(str(directory)):
        result = run("recover", directory)
    assert result.exit_code == 1 and "locked" in result.stderr


@pytest.mark.parametrize("verb", ["cat", "inspect", "recover"])
def test_wrong_questions_are_exit_code_2(tmp_path, verb):
    assert run(verb, tmp_path / "nowhere").exit_code == 2
    (tmp_path / "notes.txt").write_text("no store")
    result = run(verb, tmp_path)
    assert result.exit_code == 2 and "is not a store" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--queue", "1"], "topic"),
        (["--format", "%q"], "unknown token %q"),
        (["--offset", "1"], "topic and queue"),
        (["--json", "--format", "%s"], "choose one"),
        (["--count", "many"], "not a valid integer"),
    ],
)
def test_wrong_choices_are_exit_code_2(directory, arguments, said):
    result = run("cat", directory, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize("verb", ["cat", "inspect", "recover"])
def test_help_has_an_example(verb):
    assert f"Example:  mqlab {verb} store" in run(verb, "--help").stdout
