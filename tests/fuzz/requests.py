"""Requests that no client would send, to a running broker and a name server: each is answered, and no handler fails.

    script    which code · the body's own script · a value for each field that the node asks for
    a field   the node says which one it needs, and gets one of VALUES; so requests come past their first check

A handler that raises is seen in the journal, because a node answers whatever its handler raises: MqlabError is a
refusal, any other exception a defect.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import tempfile
from pathlib import Path

from mqlab.errors import RemotingError
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.wire import bodies
from mqlab.rocketmq.wire.command import RemotingCommand, request
from tests.fuzz.mutations import EDGES, from_script
from tests.fuzz.readers import CONFIGS, Reader, heartbeat, log_units
from tests.rocketmq.broker.world import BareClient, World

NEEDS = re.compile(r"needs (?:the field|a whole number in the field|.*field) (\w+)")
MOST_FIELDS = 20
VALUES = (
    "orders",
    "billing",
    "0",
    "1",
    "7",
    "*",
    "TagA || TagB",
    "a > 5",
    "SQL92",
    "TAG",
    "true",
    "false",
    "",
    " ",
    "订单",
    "KEYS\x01k\x02",
    "%RETRY%billing",
    "SCHEDULE_TOPIC_XXXX",
    "TBW102",
    "broker-a",
    "0A00000100002A9F0000000000001000",
    "../../etc",
    "x" * 300,
    "1.5",
    "1e9",
    "null",
    "{",
    *map(str, EDGES),
)


A_WORLD = 500


@functools.lru_cache(maxsize=1)
def _world(number: int) -> BareClient:
    """A client of a broker with a topic, some messages and a consumer."""
    made = World(Path(tempfile.mkdtemp(prefix="mqlab-fuzz-")))
    client = made.client()
    client.heartbeat("billing", bodies.SubscriptionData("orders", sub_version=1))
    for at in range(20):
        client.put("orders", f"body {at}".encode(), KEYS=f"order-{at}")
    return client


_COUNT = itertools.count()


def samples() -> list[bytes]:
    """Bodies that some request takes."""
    return [b"", heartbeat(), *CONFIGS.values(), *log_units(), b'["orders"]', b"flushDiskType=ASYNC_FLUSH\nx=1"]


def asked(script: bytes) -> object:
    """Send the request to both, and look whether a handler failed."""
    if len(script) < 3:
        return None
    client = _world(next(_COUNT) // A_WORLD)
    there = client.world
    for node in (there.broker, there.name_server):
        codes = sorted(map(int, node.remoting._handlers))
        body = from_script(samples(), script[2 : 2 + script[1] % 16])
        values = itertools.cycle(script[2:])
        fields: dict[str, str] = {}
        for _ in range(MOST_FIELDS):
            before = there.sim.journal.next_step
            command = request(codes[script[0] % len(codes)], body or None, **fields)
            answer = client.remoting.invoke(node.address, command, timeout_ms=60_000)
            with contextlib.suppress(RemotingError):
                there.sim.wait_for(answer)
            _look_for_a_defect(there, before, command)
            needed = NEEDS.search(_remark(answer))
            if needed is None:
                break
            fields[needed[1]] = VALUES[next(values) % len(VALUES)]
    return None


def _remark(answer: Promise[RemotingCommand]) -> str:
    try:
        return answer.result().remark or ""
    except RemotingError:
        return ""


def _look_for_a_defect(there: World, before: int, command: RemotingCommand) -> None:
    for record in there.sim.journal[before:]:
        for kind, values in record.changes:
            if kind == "handler.failed" and "\nmqlab.errors." not in values["error"]:
                raise AssertionError(f"{command.code} {command.ext_fields} {command.body!r}: {values['error']}")


REQUESTS = Reader("request", lambda: [bytes(range(40))], asked, slow=50)
