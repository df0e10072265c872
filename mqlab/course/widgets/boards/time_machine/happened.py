"""The moments of a story as compact data for a space-time picture, with what links them to bytes, queues and offsets.

    moment   step, ms since the first, lane, to, kind, text, look, links, and of a frame: step and ms of its sending
    bar      lane, "request" or "held", step and ms of its begin and its end (-1: still open), text

Links are texts such as ``unit broker-a 233``, ``entry broker-a orders 0 1``, ``message 0A00…``, ``group billing …``;
things with a common link light up together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.course.widgets.frame.packing import TextPool
from mqlab.lab.views.moments import FRAME

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import Journal, StepRecord
    from mqlab.lab.views.timeline import Moment

OPEN = -1
PULLS = ("PULL_MESSAGE", "LITE_PULL_MESSAGE")


class Happened:
    """The moments and bars of one journal as JSON lists; lanes and texts are numbers in ``lanes`` and ``texts``."""

    def __init__(self, journal: Journal, moments: Iterable[Moment]) -> None:
        self._journal = journal
        self._pool = TextPool()
        self._lanes = TextPool()
        shown = list(moments)
        self.start_ms = shown[0].now_ms if shown else 0
        self.moments = [self._moment(moment) for moment in shown]
        self.bars = self._bars({moment.step for moment in shown if moment.step is not None})

    def data(self) -> dict[str, Any]:
        """Everything as JSON."""
        return {
            "start_ms": self.start_ms,
            "lanes": self._lanes.texts,
            "texts": self._pool.texts,
            "moments": self.moments,
            "bars": self.bars,
        }

    def _moment(self, moment: Moment) -> list[Any]:
        text = self._pool.add
        sent: list[int] = []
        if moment.kind == FRAME and moment.step is not None:
            cause = self._cause(self._journal[moment.step])
            sent = [cause.step, cause.now_ms - self.start_ms] if cause else []
        lane = self._lanes.add(moment.lane)
        to = self._lanes.add(moment.to) if moment.to else OPEN
        links = [text(link) for link in links_of(moment.lane, dict(moment.values))]
        return [
            moment.step,
            moment.now_ms - self.start_ms,
            lane,
            to,
            text(moment.kind),
            text(moment.text),
            text(moment.look),
            links,
            sent,
        ]

    def _cause(self, record: StepRecord) -> StepRecord | None:
        return self._journal[record.cause] if record.cause >= self._journal.dropped else None

    def _bars(self, shown: set[int]) -> list[list[Any]]:
        """Requests that are shown, from sending to their answer; held pulls, from the hold to their answer."""
        bars: list[list[Any]] = []
        asked: dict[tuple[str, str, int], tuple[list[Any] | None, list[Any] | None]] = {}
        last_hold: dict[tuple[Any, ...], list[Any]] = {}
        for record in self._journal:
            frame, cause = record.about, self._cause(record)
            if frame is None or cause is None:
                continue
            if frame.flag & 1:
                for bar in asked.pop((record.node, cause.node, frame.opaque), ()):
                    # A request's bar ends where its answer arrives, a hold's where the answer is sent.
                    end = cause if bar is not None and bar[1] == "held" else record
                    if bar is not None:
                        bar[4:6] = [end.step, end.now_ms - self.start_ms]
                continue
            name = record.about_text.rsplit(" #", 1)[0]
            holds = [change.values for change in record.changes if change.kind == "pull.held"]
            request = None
            # A one-way request (the second bit of its flag) is never answered, so nothing waits for it.
            if record.step in shown and name not in PULLS and not frame.flag & 2:
                request = self._bar(cause.node, "request", cause, name)
            held = self._held(record, cause.node, holds[0], last_hold) if holds else None
            asked[cause.node, record.node, frame.opaque] = (request, held)
            bars += [bar for bar in (request, held) if bar is not None and bar not in bars[-1:]]
        return _once(bars)

    def _bar(self, node: str, kind: str, since: StepRecord, text: str) -> list[Any]:
        return [self._lanes.add(node), kind, since.step, since.now_ms - self.start_ms, OPEN, OPEN, self._pool.add(text)]

    def _held(
        self, record: StepRecord, consumer: str, values: Mapping[str, Any], last: dict[tuple[Any, ...], list[Any]]
    ) -> list[Any]:
        """The bar of a held pull; the same pull held again after its time was over continues the bar before it."""
        key = (record.node, consumer, *(values.get(name) for name in ("topic", "queue_id", "queue_offset")))
        if key not in last:
            topic, queue_id, offset = key[2:]
            words = f"held: {consumer} waits for entry {offset} of {topic} {queue_id}"
            last[key] = self._bar(record.node, "held", record, words)
        last[key][4:6] = [OPEN, OPEN]
        return last[key]


def _once(bars: list[list[Any]]) -> list[list[Any]]:
    return list({id(bar): bar for bar in bars}.values())


def links_of(lane: str, values: Mapping[str, Any]) -> list[str]:
    """What a moment's values are about, as links."""
    links = []
    broker = values.get("broker_name", lane)
    queue = f"{broker} {values.get('topic')} {values.get('queue_id')}"
    if values.get("msg_id"):
        links.append(f"message {values['msg_id']}")
    if values.get("physical_offset") is not None:
        links.append(f"unit {broker} {values['physical_offset']}")
    if values.get("queue_id") is not None and values.get("queue_offset") is not None:
        links.append(f"entry {queue} {values['queue_offset']}")
    if values.get("group") and values.get("queue_id") is not None:
        links.append(f"group {values['group']} {queue}")
    return links
