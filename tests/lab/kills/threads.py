"""A Lab on real threads dies while it sends and consumes; the next one opens what it left behind.

    sent.txt        a line for each message that was answered with SEND_OK, written after the answer
    consumed.txt    a line for each message that the listener has finished

After all kills a last life goes on until everything is consumed. Offsets are stored every few seconds only, so a
message may be consumed in two lives; RocketMQ promises no more than that.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from mqlab.lab.inspector import StoreInspector
from tests.lab.kills.processes import run_until_killed

LIFE = """
import os, sys
from mqlab import CONSUME_SUCCESS, Lab, Message

directory, life, is_last = sys.argv[1], sys.argv[2], sys.argv[3] == "last"
append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
sent, consumed = (os.open(f"{directory}/{name}.txt", append) for name in ("sent", "consumed"))

def listener(messages, context):
    for message in messages:
        os.write(consumed, message.body + b"\\n")
    return CONSUME_SUCCESS

broker = {"flush_disk_type": "SYNC_FLUSH", "mapped_file_size_commit_log": 65_536}
quiet = {"enable_trace": False}
with Lab(directory=f"{directory}/stores", driver="threads", speed=5, broker=broker, client=quiet) as lab:
    if life == "0":
        lab.create_topic("orders")
    consumer = lab.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders", "*")
    consumer.on_messages(listener)
    consumer.start()
    if is_last:
        def everything():
            return set(open(f"{directory}/sent.txt")) <= set(open(f"{directory}/consumed.txt"))
        lab.run_until(everything, limit="10m")
        raise SystemExit
    producer = lab.producer("shop", send_msg_timeout=600_000)
    for number in range(1_000_000):
        body = b"%s/%d" % (life.encode(), number)
        if producer.send(Message("orders", body)).send_status == "SEND_OK":
            os.write(sent, body + b"\\n")
"""


@dataclass(frozen=True, slots=True)
class Survived:
    """Counts after the last life; ``lost`` and ``not_consumed`` have to be 0."""

    acknowledged: int
    lost: int
    not_consumed: int


def _bodies(file: Path) -> set[bytes]:
    """The complete lines of a file that was being written when its writer died."""
    data = file.read_bytes() if file.exists() else b""
    return set(data[: data.rfind(b"\n") + 1].splitlines())


def threads_killed(directory: Path, times: int, seed: int) -> Survived:
    """Kill the Lab so many times, then let a last one finish what is there."""
    rng, log = random.Random(seed), directory / "log.txt"
    for life in range(times):
        # A life needs a while to import and recover; a kill in that part counts as well.
        seconds = rng.uniform(0.2, 2.5)
        code = run_until_killed(["-c", LIFE, str(directory), str(life), "more"], log=log, seconds=seconds)
        assert code is None, f"life {life} ended by itself with {code}: {log.read_text('utf-8')[-3000:]}"
    code = run_until_killed(["-c", LIFE, str(directory), str(times), "last"], log=log, seconds=600)
    assert code == 0, log.read_text("utf-8")[-3000:]
    acknowledged = _bodies(directory / "sent.txt")
    stored = {
        message.body
        for message in StoreInspector(directory / "stores" / "broker-a").messages()
        if message.topic == "orders"
    }
    return Survived(
        len(acknowledged), len(acknowledged - stored), len(acknowledged - _bodies(directory / "consumed.txt"))
    )
