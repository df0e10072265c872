"""What the log X-ray can do to a store: every action is done to a real broker in a Lab, and is a line of Python.

Lab 01 uses it (mqlab.course.widgets.boards.log_xray.board).

    XraySettings            flush policy and file sizes ─▶ the broker's settings
    Action("append", …)     .code() the line to paste      .do(lab) the same, done; returns what happened in words
    XrayLab                 a Lab, and the actions done in it so far; a Lab cannot go back, so undoing is doing again

The store dispatches only when it is told to. Left out: consumers; several queues of one topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.counts import counted
from mqlab.course.widgets.frame.acting import arguments_of
from mqlab.course.widgets.frame.whole_numbers import must_be_whole
from mqlab.durations import exact_text, milliseconds
from mqlab.errors import UsageError
from mqlab.lab.runtime.crash_files import Unsynced
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.wire.message import Message

BROKER = "broker-a"
LOG_FILE_SIZES = (2048, 4096, 16_384, 65_536)
POLICIES = ("ASYNC_FLUSH", "SYNC_FLUSH")
MOST_MESSAGES, MOST_BYTES = 20, 4_000
HOLD = "lab.broker().store.dispatching.auto_dispatch = False"
CLIENT = {"enable_trace": False}


@dataclass(frozen=True, slots=True)
class XraySettings:
    """The broker's settings that the learner may change. Raises UsageError for values that are not offered."""

    flush: str = "ASYNC_FLUSH"
    file_size: int = 16_384

    def __post_init__(self) -> None:
        if self.flush not in POLICIES:
            raise UsageError(f"flush must be one of {', '.join(POLICIES)}, got {self.flush!r}")
        if self.file_size not in LOG_FILE_SIZES:
            raise UsageError(f"file_size must be one of {', '.join(map(str, LOG_FILE_SIZES))}, got {self.file_size!r}")

    def broker(self) -> dict[str, Any]:
        """The settings under RocketMQ's names; queues and index are small, so that they can be seen whole."""
        return {
            "flush_disk_type": self.flush,
            "mapped_file_size_commit_log": self.file_size,
            "mapped_file_size_consume_queue": 200,
            "max_hash_slot_num": 5,
            "max_index_num": 20,
        }


@dataclass(frozen=True, slots=True)
class LogAction:
    """One action: its verb and its arguments. Raises UsageError for a verb or an argument that does not exist."""

    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defaults = {verb: values for verb, (*_, values) in VERBS.items()}
        values = arguments_of("the log X-ray", self.verb, self.arguments, defaults)
        _check(self.verb, values)
        object.__setattr__(self, "arguments", values)

    def code(self, lab: Lab | None = None) -> str:
        """The action as Python; some actions need another line while the broker is down."""
        line: str = VERBS[self.verb][0](is_down=lab is not None and not _is_up(lab), **self.arguments)
        return line

    def do(self, lab: Lab) -> str:
        """Do it; returns what happened in one sentence. Raises MqlabError when it cannot be done now."""
        words: str = VERBS[self.verb][1](lab, **self.arguments)
        return words


class XrayLab:
    """A Lab in which actions are done. ``code`` has the lines of each; a topic is made before its first message."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.code: list[tuple[str, ...]] = []
        self._topics: set[str] = set()
        lab.producer("shop")
        lab.broker().store.dispatching.auto_dispatch = False

    def do(self, action: LogAction) -> str:
        """Do one action; returns what happened in words. When it raises, the Lab must not be used any more."""
        lines = []
        topic = action.arguments.get("topic")
        if topic is not None and topic not in self._topics:
            _needs(self.lab, up=True)
            self.lab.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
            lines.append(f"lab.create_topic({topic!r}, read_queue_nums=1, write_queue_nums=1)")
        lines += action.code(self.lab).splitlines()
        words = action.do(self.lab)
        self._topics.add(topic or "")
        self.code.append(tuple(lines))
        return words


def world_of(settings: XraySettings) -> dict[str, Any]:
    """The keywords of ``play`` or ``Lab`` for these settings."""
    return {"seed": 7, "client": CLIENT, "broker": settings.broker()}


def as_code(settings: XraySettings, lines: Sequence[Sequence[str]]) -> str:
    """A story that does the same when it is pasted into a cell and run."""
    inside = ['shop = lab.producer("shop")', HOLD, *(line for action_lines in lines for line in action_lines)]
    body = "\n".join(f"    {line}" for line in inside)
    call = f"lab = play(story, seed=7, client={CLIENT!r}, broker={settings.broker()!r})"
    return f"from mqlab import Message, play\n\n\ndef story(lab):\n{body}\n\n\n{call}\n"


def relative(path: str) -> str:
    """A file's path below the store's directory."""
    return path.rpartition(f"/{BROKER}/")[2]


def _append_code(is_down: bool, topic: str, tags: str, keys: str, size: int, count: int) -> str:
    message = f"Message({topic!r}, b'.' * {size}"
    message += f", tags={tags!r}" if tags else ""
    if count == 1:
        return f"shop.send({message}{f', keys={keys!r}' if keys else ''}))"
    many = f", keys={keys!r} + str(number)" if keys else ""
    return f"for number in range({count}):\n    shop.send({message}{many}))"


def _append(lab: Lab, topic: str, tags: str, keys: str, size: int, count: int) -> str:
    _needs(lab, up=True)
    shop = lab.handles["shop-1"]
    results = []
    for number in range(count):
        key = keys if count == 1 or not keys else f"{keys}{number}"
        results.append(shop.send(Message(topic, b"." * size, tags=tags or None, keys=key or None)))
    first, last = results[0], results[-1]
    where = f"{topic} 0, queue offset {first.queue_offset}" + (f" to {last.queue_offset}" if count > 1 else "")
    statuses = sorted({result.send_status for result in results})
    return f"{', '.join(statuses)}: {where}; the log ends at {lab.broker().store.max_physical_offset}"


def _dispatch_code(is_down: bool, units: int | None) -> str:
    return f"lab.broker().store.dispatch({'' if units is None else units})"


def _dispatch(lab: Lab, units: int | None) -> str:
    _needs(lab, up=True)
    store = lab.broker().store
    count = store.dispatch(units)
    if count:
        return f"{count} unit{'s' * (count > 1)} dispatched: an entry in the queue, and one in the index for each key"
    if store.max_physical_offset > store.confirm_offset:
        return f"nothing dispatched: only what is flushed may be, and that is up to {store.confirm_offset}"
    return "nothing to dispatch: every unit is in its queue"


def _wait_code(is_down: bool, duration: str) -> str:
    return f"lab.run_for({duration!r})"


def _wait(lab: Lab, duration: str) -> str:
    before = lab.journal.next_step
    lab.run_for(duration)
    passed = exact_text(milliseconds(duration))
    flushed = [values["flushed_where"] for step, values in lab.journal.changes("store.flushed") if step.step >= before]
    return f"{passed} passed: " + (f"the log is flushed up to {flushed[-1]}" if flushed else "the log was not flushed")


def _kill_code(is_down: bool) -> str:
    return f"lab.kill({BROKER!r})"


def _kill(lab: Lab) -> str:
    _needs(lab, up=True)
    lab.kill(BROKER)
    return "the process is dead; what it wrote is still in the files"


def _power_code(is_down: bool, lose: Sequence[tuple[str, int]] | None) -> str:
    verb = "lab.broker().files.power_cut(" if is_down else f"lab.power_off({BROKER!r}"
    if lose is None:
        return f"{verb})"
    pages = ", ".join(f"({path!r}, {page})" for path, page in lose)
    keep = f"keep=lambda part: (part.path.rpartition('/{BROKER}/')[2], part.page) not in [{pages}]"
    return f"{verb}{keep})" if is_down else f"{verb}, {keep})"


def _power(lab: Lab, lose: Sequence[tuple[str, int]] | None) -> str:
    pages = None if lose is None else {tuple(page) for page in lose}
    files = lab.broker().files
    is_lost: Callable[[Unsynced], bool] = (
        (lambda part: True) if pages is None else (lambda part: (relative(part.path), part.page) in pages)
    )
    lost = [part for part in files.unsynced() if is_lost(part)]
    if _is_up(lab):
        lab.power_off(BROKER, keep=lambda part: not is_lost(part))
    else:
        files.power_cut(keep=lambda part: not is_lost(part))
    lost_pages = sum(part.kind != "rename" and part.page >= 0 for part in lost)
    rest = len(lost) - lost_pages
    words = f"the machine is off; lost: {lost_pages} page{'s' * (lost_pages != 1)}"
    return words + (f", and {rest} name{'s' * (rest != 1)} or small files that were not synced" if rest else "")


def _recover_code(is_down: bool) -> str:
    return f"lab.start({BROKER!r})\n{HOLD}"


def _recover(lab: Lab) -> str:
    _needs(lab, up=False)
    lab.start(BROKER)
    store = lab.broker().store
    store.dispatching.auto_dispatch = False
    report = store.recovery_report
    words = (
        f"{counted(report.units_scanned, 'units')} read from byte {max(report.start_offset, 0)} on, the log ends at "
    )
    words += f"{report.end_offset}, {report.units_dispatched} dispatched again, {report.cut_bytes} bytes cut"
    return words + (f" ({report.stop_reason})" if report.stop_reason else "")


Verb = tuple[Callable[..., str], Callable[..., str], Mapping[str, Any]]
MESSAGE = {"topic": "orders", "tags": "paid", "keys": "order-", "size": 40, "count": 1}
VERBS: dict[str, Verb] = {
    "append": (_append_code, _append, MESSAGE),
    "dispatch": (_dispatch_code, _dispatch, {"units": 1}),
    "wait": (_wait_code, _wait, {"duration": "500ms"}),
    "kill": (_kill_code, _kill, {}),
    "power_cut": (_power_code, _power, {"lose": None}),
    "recover": (_recover_code, _recover, {}),
}


def _is_up(lab: Lab) -> bool:
    return lab.handles[BROKER].is_up


def _needs(lab: Lab, *, up: bool) -> None:
    if _is_up(lab) != up:
        problem = "the broker is down" if up else "the broker is running"
        raise UsageError(problem, hint="recover it first" if up else "kill it or cut its power first")


def _check(verb: str, values: Mapping[str, Any]) -> None:
    """UsageError for numbers out of range: a learner types them."""
    for name, highest in (("size", MOST_BYTES), ("count", MOST_MESSAGES), ("units", 1_000)):
        value = values.get(name)
        if value is not None:
            must_be_whole(f"{verb}: {name}", value, 1, highest)
    if verb == "wait" and not 0 < milliseconds(values["duration"]) <= milliseconds("1h"):
        raise UsageError("wait: at most an hour", hint='duration="10s"')
