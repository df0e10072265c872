"""The console: RocketMQ Dashboard's verbs over a Lab, over a directory of stores, or over a cluster.

Mirrors: RocketMQ Dashboard (Cluster, Topic, Consumer, Message, MessageTrace and DLQMessage pages).

    board = console(lab)                       pages to click; every answer is one of lab.admin
    board.open("group", "billing")             the page shows it; board.table(), board.sections() have its facts
    board.preview_reset("orders", "billing", "first")        what would happen; nothing has
    board.confirm()   board.changes()          now it is done; every change that was done
    console("DIR")                             a Lab's directory or a broker's store: DIR stays as it is
    console(mqlab.connect("host:9876"))        a cluster: what is confirmed is done there

Asking is work for the Lab's nodes, so its clock goes on by some milliseconds with every page. A page without a kernel
shows the pages that were recorded when the cell ran. Left out: making and deleting topics and groups; ACL users.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from markupsafe import Markup

from mqlab.course.widgets.boards.console.changes import PreviewedChange, resend_of, reset_of
from mqlab.course.widgets.boards.console.pages import page_of
from mqlab.course.widgets.boards.console.search import WAYS, find_messages
from mqlab.course.widgets.boards.console.section import PageSection
from mqlab.course.widgets.frame.board import Board
from mqlab.durations import calendar
from mqlab.errors import MqlabError, UsageError
from mqlab.lab.views.table import Table

if TYPE_CHECKING:
    from mqlab.cluster.connected import Cluster
    from mqlab.lab.world.lab import Lab
    from mqlab.rocketmq.admin import Admin

RECORDED_THINGS = 12  # of topics and of groups


class Console(Board):
    """The explorer; ``console`` makes one. ``state["place"]`` is the page shown: "cluster", "topic orders", …"""

    module, label = "console", "Console"
    state_defaults: ClassVar[Mapping[str, Any]] = {"place": "cluster"}

    def __init__(
        self, lab: Lab | Cluster, directory: Path | None = None, notes: Sequence[str] = (), message: str = ""
    ) -> None:
        super().__init__()
        self.lab: Any = lab
        self._is_cluster = _is_cluster(lab)
        tool = "operator" if self._is_cluster else "admin"  # the page itself asks before it changes something
        self.admin: Admin = getattr(self.lab, tool)
        self.directory = directory
        self._notes = tuple(notes)
        self._message = message
        self._pages: dict[str, list[PageSection]] = {}
        self._change: PreviewedChange | None = None
        self._change_number = 0
        self._done: list[dict[str, Any]] = []

    def open(self, page: str, name: str = "") -> Console:
        """Show a page: cluster, topics, groups, messages; topic, group or message with a name (offset id)."""
        page_of(self.admin, page, name)
        self.set("place", f"{page} {name}".strip())
        return self

    def sections(self) -> dict[str, Table | str]:
        """The page shown, asked now: each section's table, or the text of its error."""
        return {section.title: section.error or section.table for section in self._now()}

    def table(self) -> Table:
        """The first section of the page shown, asked now: the text twin."""
        first = self._now()[0]
        if first.error:
            return Table([{"error": first.error}], title=first.title)
        return Table(first.table.rows, columns=first.table.columns, title=first.title, empty=first.table.empty)

    def find(self, text: str = "", *, by: str = "key", topic: str = "", begin: str = "", end: str = "") -> Table:
        """Messages by "key", "unique id", "offset id" or "time" (ms or UTC). Raises MqlabError as lab.admin does."""
        return find_messages(self.admin, text, by=by, topic=topic, begin=begin, end=end).table

    def preview_reset(self, topic: str, group: str, to: str | int) -> Table:
        """What a reset would do: ``to`` is "first", "end", "now", ms or a time in UTC. ``confirm`` then does it."""
        return self._preview(reset_of(self.admin, topic, group, to))

    def preview_resend(self, group: str, letters: Sequence[str] | None = None) -> Table:
        """The dead letters that would be sent back: those with these offset ids, or all. ``confirm`` then does it."""
        return self._preview(resend_of(self.admin, group, letters))

    def confirm(self) -> Table:
        """Do the change that was previewed last. UsageError when none waits to be confirmed."""
        return self._confirm(self._change_number).table

    def cancel(self) -> None:
        """Forget the change that was previewed."""
        self._change = None

    def changes(self) -> Table:
        """Every change that was done: when, and the call of ``lab.admin`` that did it."""
        return Table(self._done, columns=("at_ms", "call"), title="Changes", empty="nothing was changed")

    @property
    def where(self) -> str:
        """What the console looks at, in a sentence."""
        if self.directory is not None:
            return f"Stores of {self.directory}."
        if self._is_cluster:
            return f"The cluster of {', '.join(self.lab.name_servers)}."
        return f"A Lab with seed {self.lab.seed}."

    @property
    def what_changes(self) -> str:
        """What a confirmed change is made in, in a sentence."""
        if self._is_cluster:
            return "Changes are made in this cluster, at once."
        if self.directory is None:
            return "Changes are made in this Lab."
        return "Changes stay in this process: the files are not changed."

    def data(self) -> dict[str, Any]:
        """All recorded pages, and what the page's forms offer."""
        recorded = self._recorded()
        pages = {page_name: _as_json(sections) for page_name, sections in recorded.items()}
        return {
            "where": self.where,
            "what_changes": self.what_changes,
            "notes": self._notes,
            "pages": pages,
            "now": calendar(self.lab.now_ms),
            "ways": WAYS,
            "can_wait": self.directory is None and not self._is_cluster,
        }

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """What a control of the page asks; the answer has sections, the Lab's time and, for a preview, its question."""
        if name not in self._answers:
            return super().asked(name, arguments)
        return {**self._answers[name](self, arguments), "now": calendar(self.lab.now_ms)}

    def readable(self) -> Markup:
        """The recorded pages that have no name, one below the other."""
        sections = [section for page_name, page in self._recorded().items() if " " not in page_name for section in page]
        return Markup("").join(
            Markup("<h4>{}</h4>{}").format(section.title, section.error or section.table.html()) for section in sections
        )

    def text(self) -> str:
        parts = [f"{section.title}\n{section.error or section.table}" for section in self._now()]
        return "\n\n".join([f"{self.label}: {self.where}", *parts])

    def _now(self) -> list[PageSection]:
        return self._asked_of(self.state["place"])

    def _asked_of(self, page_name: str) -> list[PageSection]:
        page, _, name = page_name.partition(" ")
        return page_of(self.admin, page, name)

    def _recorded(self) -> dict[str, list[PageSection]]:
        """The pages as they were when this was first asked: lists, a dozen topics and groups, one message."""
        if not self._pages:
            for page in ("cluster", "topics", "groups", "messages"):
                self._record(page)
            # 1. The topics that users made, and the groups.
            normal = [row["topic"] for row in self._pages["topics"][0].table if row["kind"] == "NORMAL"]
            groups = [row["group"] for row in self._pages["groups"][0].table]
            for page_name in (
                *(f"topic {topic}" for topic in normal[:RECORDED_THINGS]),
                *(f"group {group}" for group in groups[:RECORDED_THINGS]),
            ):
                self._record(page_name)
            # 2. One message, and the page that is shown now.
            message = self._message or self._telling_message(groups)
            if message:
                self._record(f"message {message}")
            self._record(self.state["place"])
        return self._pages

    def _record(self, page_name: str) -> None:
        if page_name not in self._pages:
            self._pages[page_name] = self._asked_of(page_name)

    def _telling_message(self, groups: Sequence[str]) -> str:
        """The offset id of the message to record: a dead letter if there is one, else the newest message."""
        try:
            for group in groups:
                for letter in self.admin.query_dlq(group):
                    return letter.offset_msg_id
        except MqlabError:  # a broker is down, and the pages say so
            return ""
        newest = self._pages["messages"][0].table
        return str(newest[0]["offset_msg_id"]) if len(newest) else ""

    def _preview(self, change: PreviewedChange) -> Table:
        self._change = change
        self._change_number += 1
        return change.preview.table

    def _confirm(self, number: int) -> PageSection:
        change = self._change
        if change is None or number != self._change_number:
            raise UsageError("no change waits to be confirmed", hint="preview it first")
        # It must not be done twice, even when it fails half way.
        self._change = None
        done = change.do()
        self._done.append({"at_ms": self.lab.now_ms, "call": change.call})
        return done

    def _asked_page(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"sections": _as_json(self._asked_of(arguments["place"]))}

    def _asked_find(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"sections": _as_json([find_messages(self.admin, **arguments)])}

    def _asked_preview(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if "topic" in arguments:
            self.preview_reset(arguments["topic"], arguments["group"], arguments["to"])
        else:
            self.preview_resend(arguments["group"], arguments["letters"])
        assert self._change is not None
        number, preview = self._change_number, self._change.preview
        return {"sections": _as_json([preview]), "question": self._change.question, "change": number}

    def _asked_confirm(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"sections": _as_json([self._confirm(arguments["change"])])}

    def _asked_cancel(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.cancel()
        return {}

    def _asked_wait(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if self._is_cluster:
            raise UsageError("a cluster's time passes by itself")
        self.lab.run_for(arguments["duration"])
        return {}

    _answers: ClassVar[Mapping[str, Callable[[Console, Mapping[str, Any]], dict[str, Any]]]] = {
        "page": _asked_page,
        "find": _asked_find,
        "preview": _asked_preview,
        "confirm": _asked_confirm,
        "cancel": _asked_cancel,
        "wait": _asked_wait,
    }


def _is_cluster(asked: Lab | Cluster) -> bool:
    from mqlab.cluster.connected import Cluster  # here: a console over a Lab needs no network

    return isinstance(asked, Cluster)


def console(where: Lab | Cluster | str | Path, *, message: str = "") -> Console:
    """A console over a Lab, a Lab's directory, a broker's store directory, or what mqlab.connect returned.

    ``message`` is the offset id of the message that pages without a kernel show (default: a dead letter, else the
    newest). UsageError for a directory without a store.

    >>> from mqlab import Lab, Message
    >>> lab = Lab(); lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    >>> sent = lab.producer("shop").send(Message("orders", b"a book", keys="order-1"))
    >>> board = console(lab)
    >>> board.open("topic", "orders").sections()["Queues"].column("max_offset")
    [1]
    >>> board.find("order-1", topic="orders").column("body")
    [b'a book']
    """
    if not isinstance(where, str | Path):
        return Console(where, message=message)
    from mqlab.lab.world.borrowed_stores import open_stores

    notes: list[str] = []
    directory = Path(where)
    return Console(open_stores(directory, None, notes.append), directory.absolute(), notes, message)


def _as_json(sections: Sequence[PageSection]) -> list[dict[str, Any]]:
    return [section.as_json() for section in sections]
