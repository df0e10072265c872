"""A broker that keeps nothing in memory but what it can read again: a file per message, a file per group's offset."""

import json

from mqlab.lab.parts import copied, placed, stored_ms, tag_of
from mqlab.rocketmq.wire import record
from tests.lab.parts.brokers.rocketmq_shape import HANDLERS

__all__ = ["HANDLERS", "MyGroups", "MyPulls", "MyRetries", "MyStore"]


class MyStore:
    def __init__(self, disk):
        self.disk, self.shown = disk, {}
        names = disk.names("messages")
        self.count = len(names)
        self.next = {}
        self.fresh = []
        for name in names:
            one = record.decode(disk.load(name))
            self.next[one.topic, one.queue_id] = one.queue_offset + 1
            self.fresh.append((one.topic, one.queue_id, one.queue_offset, one.physical_offset))

    def put(self, topic, queue_id, unit):
        number, place = self.next.get((topic, queue_id), 0), self.count
        self.disk.replace(f"messages/{place:08d}", placed(unit, number, place))
        self.next[topic, queue_id] = number + 1
        self.count += 1
        self.fresh.append((topic, queue_id, number, place))
        return number, place

    def dispatch(self):
        fresh, self.fresh = self.fresh, []
        for topic, queue_id, number, place in fresh:
            self.disk.replace(f"queues/{topic}/{queue_id}/{number:08d}", str(place).encode())
            self.shown[topic, queue_id] = number + 1
        return [one[:3] for one in fresh]

    def unit_at(self, place):
        return self.disk.load(f"messages/{place:08d}")

    def get(self, topic, queue_id, queue_offset, most):
        numbers = range(queue_offset, min(queue_offset + most, self.max_offset(topic, queue_id)))
        places = [self.disk.load(f"queues/{topic}/{queue_id}/{number:08d}") for number in numbers]
        return [self.unit_at(int(place)) for place in places]

    def max_offset(self, topic, queue_id):
        return self.shown.get((topic, queue_id), 0)

    def offset_at(self, topic, queue_id, ms):
        at = 0
        while at < self.max_offset(topic, queue_id) and stored_ms(self.get(topic, queue_id, at, 1)[0]) < ms:
            at += 1
        return at

    def flush(self):
        pass  # replace has synced


class MyPulls:
    def __init__(self, store):
        self.store, self.held = store, {}

    def pull(self, number, pull, now_ms):
        units, after = self.scan(pull)
        if units or after != pull["queue_offset"] or pull["until_ms"] <= now_ms:
            return units, after
        self.held[number] = pull

    def scan(self, pull):
        topic, queue_id, offset = pull["topic"], pull["queue_id"], pull["queue_offset"]
        end = self.store.max_offset(topic, queue_id)
        if offset < 0:
            return [], 0
        if offset > end:
            return [], end
        units = []
        while offset < end and len(units) < pull["most"]:
            (unit,) = self.store.get(topic, queue_id, offset, 1)
            offset += 1
            if pull["tags"] == [] or tag_of(unit) in pull["tags"]:
                units.append(unit)
        return units, offset

    def arrived(self, topic, queue_id):
        found = []
        for number in list(self.held):
            pull = self.held[number]
            if pull["topic"] == topic and pull["queue_id"] == queue_id:
                found.append((number, self.scan(pull)))  # also for a message that the filter refuses
                del self.held[number]
        return found

    def look(self, now_ms):
        over = [number for number in self.held if self.held[number]["until_ms"] <= now_ms]
        return [(number, self.scan(self.held.pop(number))) for number in over]


class MyGroups:
    def __init__(self, disk):
        self.disk, self.names, self.offsets = disk, set(), {}

    def joined(self, group, member):
        self.names.add((group, member))

    def left(self, group, member):
        self.names.discard((group, member))

    def members(self, group):
        return sorted(member for name, member in self.names if name == group)

    def commit(self, group, topic, queue_id, queue_offset):
        self.disk.replace(f"offsets/{group}/{topic}/{queue_id}", str(queue_offset).encode())

    def committed(self, group, topic, queue_id):
        return int(self.disk.load(f"offsets/{group}/{topic}/{queue_id}") or -1)

    def save(self):
        pass  # every commit is saved


class MyRetries:
    def __init__(self, store, disk, delays_ms):
        self.store, self.disk, self.delays_ms = store, disk, delays_ms

    def send_back(self, group, unit, level, most, now_ms):
        one = record.decode(unit)
        if one.reconsume_times >= most or level < 0:
            self.store.put(f"%DLQ%{group}", 0, copied(unit))
            return "dead"
        level = min(level or one.reconsume_times + 3, len(self.delays_ms))
        waits = {"due": now_ms + self.delays_ms[level - 1], "group": group, "unit": copied(unit).hex()}
        self.disk.replace(
            f"retries/{one.property_map['UNIQ_KEY']}-{one.reconsume_times}-{group}", json.dumps(waits).encode()
        )
        return "retry"

    def look(self, now_ms):
        for name in self.disk.names("retries"):
            waits = json.loads(self.disk.load(name))
            if "unit" in waits and waits["due"] <= now_ms:
                self.store.put(f"%RETRY%{waits['group']}", 0, bytes.fromhex(waits["unit"]))
                self.disk.replace(name, b"{}")
