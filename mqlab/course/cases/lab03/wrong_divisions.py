"""How queues are divided under other beliefs: what the slips of lab 03 would answer."""

from __future__ import annotations

import bisect
import hashlib
import zlib
from collections.abc import Callable, Iterable, Sequence

from mqlab.course.kit import OneOf
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.wire.message import MessageQueue


def md5(text: str) -> bytes:
    """The digest that the ring's hash is made of."""
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


def first_four(text: str) -> int:
    """RocketMQ's hash of the ring."""
    return int.from_bytes(md5(text)[:4], "big")


def _number(call: Call) -> int:
    return int(call["members"].index(call["me"])) if call["me"] in call["members"] else -1


def _block(call: Call, sizes: Sequence[int]) -> list[MessageQueue]:
    """The block of a member, if the members have these sizes."""
    number = _number(call)
    return list(call["queues"][sum(sizes[:number]) :][: sizes[number]]) if number >= 0 else []


def _shares(call: Call) -> tuple[int, int, int]:
    share, extra = divmod(len(call["queues"]), len(call["members"]))
    return share, extra, len(call["members"])


def dealt(call: Call) -> list[MessageQueue]:
    """One by one, like cards."""
    number = _number(call)
    return list(call["queues"][number :: len(call["members"])]) if number >= 0 else []


def in_blocks(call: Call) -> list[MessageQueue]:
    """Blocks of neighbours, as AVG makes them."""
    share, extra, count = _shares(call)
    return _block(call, [share + (number < extra) for number in range(count)])


def rest_to_the_last(call: Call) -> list[MessageQueue]:
    """Even blocks; the last member takes the whole remainder."""
    share, extra, count = _shares(call)
    return _block(call, [*[share] * (count - 1), share + extra])


def last_ones_have_more(call: Call) -> list[MessageQueue]:
    """Blocks in which the last members have one more."""
    share, extra, count = _shares(call)
    return _block(call, [share + (number >= count - extra) for number in range(count)])


def rest_to_nobody(call: Call) -> list[MessageQueue]:
    """Even blocks; the remainder has no reader."""
    share, _, count = _shares(call)
    return _block(call, [share] * count)


def rounded_up(call: Call) -> list[MessageQueue]:
    """Blocks of the larger size for all: the queues run out too early."""
    share, extra, count = _shares(call)
    return _block(call, [share + (extra > 0)] * count)


def extra_at_the_end(call: Call) -> list[MessageQueue]:
    """Blocks of the even share; what is left is dealt one by one, from the end of the list."""
    share, extra, count = _shares(call)
    number = _number(call)
    mine = _block(call, [share] * count)
    return mine + ([call["queues"][share * count + number]] if 0 <= number < extra else [])


def anew_for_each_broker(call: Call) -> list[MessageQueue]:
    """Dealt again from each broker's first queue."""
    number, mine = _number(call), []
    for broker in dict.fromkeys(queue.broker_name for queue in call["queues"]):
        of_broker = [queue for queue in call["queues"] if queue.broker_name == broker]
        mine += of_broker[number :: len(call["members"])] if number >= 0 else []
    return mine


def shifted_by_one(call: Call) -> list[MessageQueue]:
    """Dealt with the second queue first."""
    number, count = _number(call), len(call["members"])
    return list(call["queues"][(number + 1) % count :: count]) if number >= 0 else []


def _points(call: Call, hash_of: Callable[[str], int], numbers: Iterable[int]) -> list[tuple[int, str]]:
    return sorted({hash_of(f"{member}-{number}"): member for member in call["members"] for number in numbers}.items())


def _on_a_ring(
    call: Call, points: Sequence[tuple[int, str]], hash_of: Callable[[str], int], back: int = 0, wraps: bool = True
) -> list[MessageQueue]:
    """The member's queues; ``back`` 1 takes the point before, without ``wraps`` the last queues have no owner."""
    hashes = [point for point, _ in points]
    mine = []
    for queue in call["queues"]:
        index = bisect.bisect_left(hashes, hash_of(str(queue))) - back
        if (wraps or index < len(points)) and points and points[index % len(points)][1] == call["me"]:
            mine.append(queue)
    return mine


def _all_nodes(call: Call) -> range:
    return range(call["virtual_nodes"])


def one_point(call: Call) -> list[MessageQueue]:
    """A ring on which each member is once."""
    points = sorted((first_four(member), member) for member in call["members"])
    return _on_a_ring(call, points, first_four)


def point_before(call: Call) -> list[MessageQueue]:
    """The point before the queue."""
    return _on_a_ring(call, _points(call, first_four, _all_nodes(call)), first_four, back=1)


def no_wrap(call: Call) -> list[MessageQueue]:
    """A ring that does not begin again."""
    return _on_a_ring(call, _points(call, first_four, _all_nodes(call)), first_four, wraps=False)


def nodes_from_one(call: Call) -> list[MessageQueue]:
    """Virtual nodes that are numbered from 1."""
    return _on_a_ring(call, _points(call, first_four, range(1, call["virtual_nodes"] + 1)), first_four)


def other_names(call: Call) -> OneOf:
    """Virtual nodes named in another way."""

    def mine(mark: str) -> list[MessageQueue]:
        names = {f"{member}{mark}{number}": member for member in call["members"] for number in _all_nodes(call)}
        points = {first_four(name): member for name, member in names.items()}
        return _on_a_ring(call, sorted(points.items()), first_four)

    return OneOf(map(mine, ("", "#", "_", "@")))


def always_ten(call: Call) -> list[MessageQueue]:
    """RocketMQ's default of ten virtual nodes."""
    return _on_a_ring(call, _points(call, first_four, range(10)), first_four)


def another_piece(call: Call) -> OneOf:
    """Other four bytes of the digest, the first four from the wrong end, or another hash."""
    others: tuple[Callable[[str], int], ...] = (
        lambda text: int.from_bytes(md5(text)[:4], "little"),
        lambda text: int.from_bytes(md5(text)[-4:], "big"),
        lambda text: int.from_bytes(md5(text), "little"),
        lambda text: int.from_bytes(hashlib.sha1(text.encode(), usedforsecurity=False).digest()[:4], "big"),
        lambda text: int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big"),
        lambda text: zlib.crc32(text.encode()),
    )
    return OneOf(_on_a_ring(call, _points(call, hash_of, _all_nodes(call)), hash_of) for hash_of in others)


def queue_by_its_repr(call: Call) -> OneOf:
    """The queue's key written in another way."""
    points = _points(call, first_four, _all_nodes(call))
    hashes = [point for point, _ in points]

    def mine(key: Callable[[MessageQueue], str]) -> list[MessageQueue]:
        owner = {q: points[bisect.bisect_left(hashes, first_four(key(q))) % len(points)][1] for q in call["queues"]}
        return [queue for queue in call["queues"] if owner[queue] == call["me"]]

    return OneOf((mine(repr), mine(lambda queue: str(queue.queue_id))))
