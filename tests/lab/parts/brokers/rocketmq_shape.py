"""A broker that copies RocketMQ's shape: a commit log of units, consume queues, delay queues, JSON files of offsets."""

import json
import struct

from mqlab.lab.parts import copied, placed, stored_ms, unit_of
from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.java_hash import tags_code

LOG_BYTES, QUEUE_BYTES, ENTRY = 1 << 18, 20_000, struct.Struct(">qiq")
WAITING = "WAITING_RETRIES"


class MyStore:
    def __init__(self, disk):
        self.disk = disk
        self.end = self.dispatched = 0
        self.numbers, self.readable = {}, {}
        self.unsynced = set()
        self.recover()

    def put(self, topic, queue_id, unit):
        room = LOG_BYTES - self.end % LOG_BYTES
        if len(unit) + record.BLANK_SIZE > room:
            self.write(self.end, record.blank(room))
            self.end += room
        number, place = self.numbers.get((topic, queue_id), 0), self.end
        self.write(place, placed(unit, number, place))
        self.end += len(unit)
        self.numbers[topic, queue_id] = number + 1
        return number, place

    def write(self, place, data):
        name, begin = self.file_of(place)
        if not self.disk.size(name):
            self.disk.create(name, LOG_BYTES)
        self.disk.write(name, begin, data)
        self.unsynced.add(name)

    def unit_at(self, place):
        name, begin = self.file_of(place)
        size = int.from_bytes(self.disk.read(name, begin, 4), "big")
        return self.disk.read(name, begin, size)

    def file_of(self, place):
        start = place - place % LOG_BYTES
        return f"commitlog/{start:020d}", place - start

    def walk(self, place):
        """Every unit from a place on: (place, unit)."""
        while self.disk.size(self.file_of(place)[0]):
            name, begin = self.file_of(place)
            size = int.from_bytes(self.disk.read(name, begin, 4), "big")
            data = self.disk.read(name, begin, min(size, LOG_BYTES - begin))
            found = record.check(data, 0)
            if found.kind == record.BLANK:
                place += LOG_BYTES - begin
            elif found.kind == record.UNIT:
                yield place, data[: found.size]
                place += found.size
            else:
                return

    def recover(self):
        """The end of the log is its first unit that is not whole: zeros from there on."""
        for place, unit in self.walk(0):
            one = record.decode(unit)
            self.numbers[one.topic, one.queue_id] = one.queue_offset + 1
            self.end = place + len(unit)
        for name in self.disk.names("commitlog"):
            begin = max(0, self.end - int(name.rpartition("/")[2]))
            if begin < LOG_BYTES:
                self.disk.write(name, begin, bytes(LOG_BYTES - begin))

    def dispatch(self):
        found = []
        for place, unit in self.walk(self.dispatched):
            if place >= self.end:
                break
            one = record.decode(unit)
            code = tags_code(one.property_map.get("TAGS"))
            name, at = self.entry(one.topic, one.queue_id, one.queue_offset)
            if not self.disk.size(name):
                self.disk.create(name, QUEUE_BYTES)
            self.disk.write(name, at, ENTRY.pack(place, len(unit), code))
            self.readable[one.topic, one.queue_id] = one.queue_offset + 1
            self.dispatched = place + len(unit)
            found.append((one.topic, one.queue_id, one.queue_offset))
        return found

    def entry(self, topic, queue_id, number):
        position = number * ENTRY.size
        start = position - position % QUEUE_BYTES
        return f"consumequeue/{topic}/{queue_id}/{start:020d}", position - start

    def get(self, topic, queue_id, queue_offset, most):
        units = []
        for number in range(queue_offset, min(queue_offset + most, self.max_offset(topic, queue_id))):
            name, at = self.entry(topic, queue_id, number)
            place, _, _ = ENTRY.unpack(self.disk.read(name, at, ENTRY.size))
            units.append(self.unit_at(place))
        return units

    def max_offset(self, topic, queue_id):
        return self.readable.get((topic, queue_id), 0)

    def offset_at(self, topic, queue_id, ms):
        low, high = 0, self.max_offset(topic, queue_id)
        while low < high:
            middle = (low + high) // 2
            if stored_ms(self.get(topic, queue_id, middle, 1)[0]) < ms:
                low = middle + 1
            else:
                high = middle
        return low

    def flush(self):
        for name in sorted(self.unsynced):
            self.disk.sync(name)
        self.unsynced.clear()


class MyPulls:
    def __init__(self, store):
        self.store, self.held = store, {}

    def pull(self, number, pull, now_ms):
        units, next_offset = self.read(pull)
        if units or next_offset != pull["queue_offset"] or pull["until_ms"] <= now_ms:
            return units, next_offset
        self.held[number] = pull
        return None

    def read(self, pull):
        queue, offset = (pull["topic"], pull["queue_id"]), pull["queue_offset"]
        end = self.store.max_offset(*queue)
        if not 0 <= offset <= end:
            return [], max(0, min(offset, end))
        units = []
        while offset < end and not units:
            seen = self.store.get(*queue, offset, pull["most"])
            units = [unit for unit in seen if self.wants(pull, unit)]
            offset += len(seen)
        return units, offset

    def wants(self, pull, unit):
        return not pull["tags"] or record.decode(unit).property_map.get("TAGS") in pull["tags"]

    def arrived(self, topic, queue_id):
        answers = []
        for number, pull in list(self.held.items()):
            if (pull["topic"], pull["queue_id"]) == (topic, queue_id):
                answer = self.read(pull)
                if answer[0]:
                    answers.append((number, answer))
                    del self.held[number]
        return answers

    def look(self, now_ms):
        over = [number for number, pull in self.held.items() if pull["until_ms"] <= now_ms]
        return [(number, self.read(self.held.pop(number))) for number in over]


class MyGroups:
    def __init__(self, disk):
        self.disk, self.groups = disk, {}
        self.offsets = json.loads(disk.load("config/myOffsets.json") or b"{}")

    def joined(self, group, member):
        self.groups.setdefault(group, {})[member] = True

    def left(self, group, member):
        self.groups.get(group, {}).pop(member, None)

    def members(self, group):
        return sorted(self.groups.get(group, {}))

    def commit(self, group, topic, queue_id, queue_offset):
        self.offsets[f"{topic}@{group}@{queue_id}"] = queue_offset

    def committed(self, group, topic, queue_id):
        return self.offsets.get(f"{topic}@{group}@{queue_id}", -1)

    def save(self):
        self.disk.replace("config/myOffsets.json", json.dumps(self.offsets).encode())


class MyRetries:
    def __init__(self, store, disk, delays_ms):
        self.store, self.disk, self.delays_ms = store, disk, delays_ms
        self.moved = json.loads(disk.load("config/myRetries.json") or b"{}")

    def send_back(self, group, unit, level, most, now_ms):
        times = record.decode(unit).reconsume_times
        if times >= most or level < 0:
            self.store.put(f"%DLQ%{group}", 0, copied(unit))
            return "dead"
        level = min(level or 3 + times, len(self.delays_ms))
        due_ms = now_ms + self.delays_ms[level - 1]
        self.store.put(WAITING, level, copied(unit, MY_GROUP=group, MY_DUE=str(due_ms)))
        return "retry"

    def look(self, now_ms):
        before = dict(self.moved)
        for level in range(1, len(self.delays_ms) + 1):
            at = self.moved.get(str(level), 0)
            for unit in self.store.get(WAITING, level, at, 32):
                waits = record.decode(unit).property_map
                if int(waits["MY_DUE"]) > now_ms:
                    break
                self.store.put(f"%RETRY%{waits['MY_GROUP']}", 0, unit)
                at += 1
            self.moved[str(level)] = at
        if self.moved != before:
            self.disk.replace("config/myRetries.json", json.dumps(self.moved).encode())


def send(broker, request):
    fields = request.fields
    unit = unit_of(fields, request.body, request.client, broker.now_ms())
    queue_offset, place = broker.store.put(fields["b"], int(fields["e"]), unit)
    return 0, {"msgId": broker.message_id(place), "queueId": int(fields["e"]), "queueOffset": queue_offset}, None


def pull(broker, request):
    fields = request.fields
    queue, offset, flag = (fields["topic"], int(fields["queueId"])), int(fields["queueOffset"]), int(fields["sysFlag"])
    answer = request.answer
    if answer is None:
        if flag & 1:
            broker.groups.commit(fields["consumerGroup"], *queue, int(fields["commitOffset"]))
        waits_ms = int(fields["suspendTimeoutMillis"]) if flag & 2 else 0
        asked = {"topic": queue[0], "queue_id": queue[1], "queue_offset": offset, "most": int(fields["maxMsgNums"])}
        asked |= {"tags": request.tags, "until_ms": broker.now_ms() + waits_ms}
        answer = broker.pulls.pull(request.number, asked)
        if answer is None:
            return None
    units, next_offset = answer
    end = broker.store.max_offset(*queue)
    code = 0 if units else 21 if not 0 <= offset <= end else 19 if next_offset == offset else 20
    fields = {"nextBeginOffset": next_offset, "minOffset": 0, "maxOffset": end, "suggestWhichBrokerId": 0}
    return code, fields, b"".join(units)


def send_back(broker, request):
    fields = request.fields
    level, most = int(fields.get("delayLevel", 0)), int(fields.get("maxReconsumeTimes", 16))
    became = broker.retries.send_back(fields["group"], int(fields["offset"]), level, most)
    return (1 if became is None else 0), {}, None


def committed(broker, request):
    fields = request.fields
    offset = broker.groups.committed(fields["consumerGroup"], fields["topic"], int(fields["queueId"]))
    return (0, {"offset": offset}, None) if offset >= 0 else (22, {}, None)


def commit(broker, request):
    fields = request.fields
    broker.groups.commit(fields["consumerGroup"], fields["topic"], int(fields["queueId"]), int(fields["commitOffset"]))
    return 0, {}, None


def members(broker, request):
    found = broker.groups.members(request.fields["consumerGroup"])
    return 0, {}, json.dumps({"consumerIdList": found}).encode()


HANDLERS = {310: send, 11: pull, 36: send_back, 14: committed, 15: commit, 38: members}
