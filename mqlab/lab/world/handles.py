"""The notebook's handle of one node: the same object across kill, power-off and start.

lab.broker(...), lab.push_consumer(...) and similar verbs return one.

    handle.anything ─▶ the node object of the present life
    handle.subscribe(...), .on_messages(...), .start() ─▶ also recorded, and repeated after a restart

Other calls are not repeated: a restarted process has its files and its settings, as in reality.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.errors import NodeLost, UsageError
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Promise

Build = Callable[[Ports], Any]
BROKERS = ("broker", "slave")
SERVERS = (*BROKERS, "name server")
SET_UP = frozenset(
    {
        "assign",
        "on_messages",
        "on_messages_orderly",
        "register_consume_message_hook",
        "register_message_listener",
        "register_message_queue_listener",
        "register_pull_task_callback",
        "register_send_message_hook",
        "register_topic_message_queue_change_listener",
        "register_topics",
        "set_message_queue_listener",
        "set_sub_expression_for_assign",
        "subscribe",
        "unsubscribe",
    }
)


class NodeHandle:
    """A named node: its role, the files of its machine, and the object that lives there now.

    Attributes of the node object are attributes of the handle. Equal to another handle only if it is the same.
    """

    def __init__(self, name: str, role: str, files: RealFiles, ports: Ports, build: Build) -> None:
        self._build = build
        self._set_up: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._started = False
        self._down_word = ""
        self._ports = ports
        self.name = name
        self.role = role
        self.files = files
        self.node = build(ports)

    @property
    def is_up(self) -> bool:
        return not self._down_word

    @property
    def status(self) -> str:
        """The name, with the reason when the node is not running."""
        return self.name if self.is_up else f"{self.name} ({self._down_word})"

    def start(self) -> Any:
        """Start the node; a restart starts it again."""
        self.must_be_up()
        self._started = True
        return self._start()

    def shutdown(self) -> Any:
        """Shut the node down cleanly."""
        self.must_be_up()
        self._started = False
        return self.on_its_node(self.node.shutdown)

    def went_down(self, word: str) -> None:
        """Record that its process ended; ``word`` is "killed" or "powered off"."""
        self._down_word = word

    def came_back(self, ports: Ports) -> None:
        """Build a new node on the same machine, repeat its set-up, and start it if it was started."""
        self._down_word = ""
        self._ports = ports
        # A new process: built again, then set up with the recorded calls, then started if it had been started.
        self.node = self._build(ports)
        for verb, args, kwargs in self._set_up:
            getattr(self.node, verb)(*args, **kwargs)
        if self._started:
            self._start()

    def _start(self) -> Any:
        try:
            return self.on_its_node(self.node.start)
        except NodeLost:
            return None  # its process ended during the start: the next life starts again

    def on_its_node(self, verb: Callable[[], Any]) -> Any:
        """Run a verb of a server as a step of its node. The blocking verbs of clients do so themselves."""
        if self.role in SERVERS:
            return self._ports.workers.call(lambda: Promise.of(verb()))
        return verb()

    def must_be_up(self) -> None:
        """Raise UsageError for a node that is down."""
        if not self.is_up:
            raise UsageError(f"{self.name} is {self._down_word}", hint=f'lab.start("{self.name}") brings it back')

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        value = getattr(self.node, attribute)
        if attribute not in SET_UP:
            return value

        def remembered(*args: Any, **kwargs: Any) -> Any:
            self.must_be_up()
            answer = value(*args, **kwargs)
            self._set_up.append((attribute, args, kwargs))
            return answer

        return remembered

    def __repr__(self) -> str:
        return repr(self.node) if self.is_up else f"<{self.status}>"
