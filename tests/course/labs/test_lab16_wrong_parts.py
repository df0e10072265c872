"""Lab 16: wrong parts that only one of its days can tell, each refused with the rule that it breaks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqlab.course.cases.lab16.manifest import EXERCISES
from tests.lab.parts.brokers import rocketmq_shape

BY_ID = {asked.id: asked for asked in EXERCISES}
Store: Any = rocketmq_shape.MyStore
Pulls: Any = rocketmq_shape.MyPulls
Groups: Any = rocketmq_shape.MyGroups
Retries: Any = rocketmq_shape.MyRetries
HANDLERS: Any = rocketmq_shape.HANDLERS


class SyncsTheLastLogFile(Store):
    def flush(self) -> None:
        for name in self.disk.names("commitlog")[-1:]:
            self.disk.sync(name)


class SortsTheNew(Store):
    def dispatch(self) -> Any:
        return sorted(super().dispatch())


class NumbersWhatCanBeRead(Store):
    def put(self, topic: str, queue_id: int, unit: bytes) -> Any:
        self.numbers[topic, queue_id] = self.max_offset(topic, queue_id)
        return super().put(topic, queue_id, unit)


class TakesAPartOfATag(Pulls):
    def wants(self, pull: Any, unit: bytes) -> bool:
        tag = rocketmq_shape.record.decode(unit).property_map.get("TAGS") or ""
        return not pull["tags"] or any(wanted in tag for wanted in pull["tags"])


class TakesTheUntagged(Pulls):
    def wants(self, pull: Any, unit: bytes) -> bool:
        return super().wants(pull, unit) or "TAGS" not in rocketmq_shape.record.decode(unit).property_map


class TakesOneTag(Pulls):
    def wants(self, pull: Any, unit: bytes) -> bool:
        return bool(super().wants({"tags": pull["tags"][:1]}, unit))


class WakesEveryQueue(Pulls):
    def arrived(self, topic: str, queue_id: int) -> Any:
        woken = [number for number, pull in self.held.items() if pull["topic"] == topic]
        return [(number, self.read(self.held.pop(number))) for number in woken]


class SavesMembers(Groups):
    def __init__(self, disk: Any) -> None:
        super().__init__(disk)
        self.groups = json.loads(disk.load("members.json") or b"{}")

    def save(self) -> None:
        super().save()
        self.disk.replace("members.json", json.dumps(self.groups).encode())


class OneForBilling(Retries):
    def send_back(self, group: str, *sent: Any) -> Any:
        return super().send_back("billing", *sent)


class SecondQueue(Retries):
    def look(self, now_ms: int) -> None:
        put, self.store.put = self.store.put, lambda topic, queue_id, unit: put(topic, 1, unit)
        super().look(now_ms)
        self.store.put = put


def with_handler(code: int, handler: Any) -> Any:
    return {**HANDLERS, code: handler}


def stored_in_queue_0(broker: Any, request: Any) -> Any:
    request.fields, wanted = {**request.fields, "e": "0"}, int(request.fields["e"])
    code, fields, body = rocketmq_shape.send(broker, request)
    return code, {**fields, "queueId": wanted}, body


def without_ends(broker: Any, request: Any) -> Any:
    answer = rocketmq_shape.pull(broker, request)
    return answer and (answer[0], {"nextBeginOffset": answer[1]["nextBeginOffset"]}, answer[2])


def found_always(broker: Any, request: Any) -> Any:
    answer = rocketmq_shape.pull(broker, request)
    return answer and (0, *answer[1:])


def plain_list(broker: Any, request: Any) -> Any:
    return 0, {}, json.dumps(broker.groups.members(request.fields["consumerGroup"])).encode()


def zero_if_unknown(broker: Any, request: Any) -> Any:
    return 0, rocketmq_shape.committed(broker, request)[1] or {"offset": 0}, None


WRONG = [
    ("store", "a second file", SyncsTheLastLogFile, "After flush, every message that was put survives a power cut"),
    ("store", "messages come in order", SortsTheNew, "once, in the order of the log"),
    ("store", "messages come in order", NumbersWhatCanBeRead, "and each further one the next number"),
    ("pulls", "offsets never pass a message", TakesAPartOfATag, "Only messages with a wanted tag are given"),
    ("pulls", "offsets never pass a message", TakesTheUntagged, "Only messages with a wanted tag are given"),
    ("pulls", "every wanted message is offered", TakesOneTag, "none is left out"),
    ("pulls", "an arrival wakes who waits", WakesEveryQueue, "A pull that finds nothing and has seen nothing is held"),
    ("groups", "killed, it has lost nothing that was saved", SavesMembers, "in this life of the broker"),
    ("retries", "retries come", OneForBilling, "A copy goes to %RETRY% of the group that has sent the message back"),
    ("retries", "retries come", SecondQueue, "a copy is in %RETRY%group, queue 0"),
    ("handlers", "SENT is stored", with_handler(310, stored_in_queue_0), "in the queue that the send names"),
    ("handlers", "SENT is stored", with_handler(11, without_ends), "A pull is answered with what MyPulls gives"),
    ("handlers", "every wanted message is offered", with_handler(11, found_always), "19 if nothing is new"),
    ("handlers", "SENT is stored", with_handler(38, plain_list), "JSON with their list as consumerIdList"),
    ("handlers", "SENT is stored", with_handler(14, zero_if_unknown), "of a group that never committed gets code 22"),
]


@pytest.mark.parametrize(("file", "promise", "part", "rule"), WRONG, ids=[f"{row[0]}-{row[3][:30]}" for row in WRONG])
def test_a_wrong_part_is_refused_with_the_rule_that_it_breaks(file: str, promise: str, part: Any, rule: str) -> None:
    asked = BY_ID[f"lab16.{file}"]
    (day,) = [one for one in asked.form.promises if one.name == promise]
    finding = asked.form.look({asked.defines[0]: part}, day, 1)
    assert finding is not None and rule in finding.rule, finding
