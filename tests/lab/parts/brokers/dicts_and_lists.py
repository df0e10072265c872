"""A broker of dictionaries and lists; what must outlive its process is appended to one journal per part, as text."""

import ast

from mqlab.lab.parts import copied, placed, stored_ms, tag_of
from mqlab.rocketmq.wire import record
from tests.lab.parts.brokers.rocketmq_shape import HANDLERS

__all__ = ["HANDLERS", "MyGroups", "MyPulls", "MyRetries", "MyStore"]

SIZE = 1 << 18


class Journal:
    """Pieces of bytes, one after the other, each after its length and a check sum; a piece is in one of its files."""

    def __init__(self, disk, name):
        self.disk, self.name, self.pieces, self.files = disk, name, [], 0
        self.open_next()
        while True:
            data, self.end = disk.read(self.file, 0, SIZE), 0
            while size := int.from_bytes(data[self.end : self.end + 4], "big"):
                piece = data[self.end + 8 : self.end + 8 + size]
                if len(piece) < size or int.from_bytes(data[self.end + 4 : self.end + 8], "big") != sum(piece):
                    break
                self.pieces.append(piece)
                self.end += 8 + size
            disk.write(self.file, self.end, bytes(SIZE - self.end))
            if not disk.size(f"{name}.{self.files}"):
                break
            self.open_next()

    def open_next(self):
        self.file, self.end = f"{self.name}.{self.files}", 0
        self.files += 1
        if not self.disk.size(self.file):
            self.disk.create(self.file, SIZE)

    def append(self, piece):
        if self.end + len(piece) + 16 > SIZE:
            self.disk.sync(self.file)
            self.open_next()
        self.disk.write(self.file, self.end, len(piece).to_bytes(4, "big") + sum(piece).to_bytes(4, "big") + piece)
        self.end += 8 + len(piece)

    def sync(self):
        self.disk.sync(self.file)


class MyStore:
    def __init__(self, disk):
        self.journal, self.queues, self.shown, self.fresh, self.places = Journal(disk, "store.journal"), {}, {}, [], {}
        for unit in self.journal.pieces:
            one = record.decode(unit)
            self._keep(one.topic, one.queue_id, unit, one.queue_offset, one.physical_offset)

    def _keep(self, topic, queue_id, unit, number, place):
        self.queues.setdefault((topic, queue_id), []).append(unit)
        self.places[place] = unit
        self.fresh.append((topic, queue_id, number))

    def put(self, topic, queue_id, unit):
        number, place = len(self.queues.get((topic, queue_id), ())), len(self.places)
        unit = placed(unit, number, place)
        self.journal.append(unit)
        self._keep(topic, queue_id, unit, number, place)
        return number, place

    def dispatch(self):
        fresh, self.fresh = self.fresh, []
        for topic, queue_id, number in fresh:
            self.shown[topic, queue_id] = number + 1
        return fresh

    def get(self, topic, queue_id, queue_offset, most):
        end = self.max_offset(topic, queue_id)
        return self.queues.get((topic, queue_id), [])[queue_offset : min(end, queue_offset + most)]

    def unit_at(self, place):
        return self.places[place]

    def max_offset(self, topic, queue_id):
        return self.shown.get((topic, queue_id), 0)

    def offset_at(self, topic, queue_id, ms):
        end = self.max_offset(topic, queue_id)
        units = self.get(topic, queue_id, 0, end)
        return next((number for number, unit in enumerate(units) if stored_ms(unit) >= ms), end)

    def flush(self):
        self.journal.sync()


class MyPulls:
    def __init__(self, store):
        self.store, self.waiting = store, []

    def _answer(self, pull):
        queue, at = (pull["topic"], pull["queue_id"]), pull["queue_offset"]
        end, given = self.store.max_offset(*queue), []
        if at < 0 or at > end:
            return [], min(max(at, 0), end)
        for unit in self.store.get(*queue, at, end - at):
            if len(given) == pull["most"]:
                break
            at += 1
            if not pull["tags"] or tag_of(unit) in pull["tags"]:
                given.append(unit)
        return given, at

    def pull(self, number, pull, now_ms):
        answer = self._answer(pull)
        if not answer[0] and answer[1] == pull["queue_offset"] and now_ms < pull["until_ms"]:
            self.waiting.append((number, pull))
            return None
        return answer

    def _end(self, is_over):
        over = [(number, pull) for number, pull in self.waiting if is_over(pull)]
        self.waiting = [one for one in self.waiting if one not in over]
        return [(number, self._answer(pull)) for number, pull in over]

    def arrived(self, topic, queue_id):
        return self._end(lambda pull: (pull["topic"], pull["queue_id"]) == (topic, queue_id) and self._answer(pull)[0])

    def look(self, now_ms):
        return self._end(lambda pull: pull["until_ms"] <= now_ms)


class MyGroups:
    def __init__(self, disk):
        self.disk, self.there = disk, []
        text = disk.load("groups.txt")
        self.offsets = ast.literal_eval(text.decode()) if text else {}

    def joined(self, group, member):
        if (group, member) not in self.there:
            self.there.append((group, member))

    def left(self, group, member):
        self.there = [one for one in self.there if one != (group, member)]

    def members(self, group):
        return sorted(member for one, member in self.there if one == group)

    def commit(self, group, topic, queue_id, queue_offset):
        self.offsets[group, topic, queue_id] = queue_offset

    def committed(self, group, topic, queue_id):
        return self.offsets.get((group, topic, queue_id), -1)

    def save(self):
        self.disk.replace("groups.txt", repr(self.offsets).encode())


class MyRetries:
    def __init__(self, store, disk, delays_ms):
        self.store, self.delays_ms = store, delays_ms
        self.journal, self.waiting = Journal(disk, "retries.journal"), {}
        for piece in self.journal.pieces:
            number, *rest = ast.literal_eval(piece.decode())
            if rest:
                self.waiting[number] = rest
            else:
                del self.waiting[number]
        self.number = len(self.journal.pieces)

    def send_back(self, group, unit, level, most, now_ms):
        times = record.decode(unit).reconsume_times
        if level < 0 or times >= most:
            self.store.put(f"%DLQ%{group}", 0, copied(unit))
            return "dead"
        level = min(level or 3 + times, len(self.delays_ms))
        self.number += 1
        self.waiting[self.number] = [now_ms + self.delays_ms[level - 1], group, copied(unit)]
        self.journal.append(repr((self.number, *self.waiting[self.number])).encode())
        self.journal.sync()
        return "retry"

    def look(self, now_ms):
        for number, (due_ms, group, unit) in list(self.waiting.items()):
            if due_ms <= now_ms:
                self.store.put(f"%RETRY%{group}", 0, unit)
                self.journal.append(repr((number,)).encode())
                del self.waiting[number]
