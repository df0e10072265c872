"""What every verb of a Lab works on: its world, its directory, its nodes and what listeners were given.

The groups of verbs (clients, faults, schedule, stored, what_happened) extend this class, and the functions next to them
(cluster, absences, progress) are handed it. It knows none of them.

    state.handle_of("broker-a", "broker", "slave")      a node by its name, or an error that lists the names
    state.simulation("step")                            the simulated world, or an error that names the verb
    state.fit_nodes(fitter)                             other parts for nodes; mqlab.lab.simulation plants defects so
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.errors import UsageError
from mqlab.lab.parts.folder import OwnParts
from mqlab.lab.runtime.journal import Journal
from mqlab.lab.runtime.sim import SimWorld
from mqlab.lab.runtime.world import World
from mqlab.lab.world.deliveries import DeliveryBook
from mqlab.lab.world.handles import Build, NodeHandle
from mqlab.rocketmq.broker.plug_in import NOTHING_PLUGGED_IN, PlugIn
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Ports

if TYPE_CHECKING:
    from mqlab.lab.world.shared_resources import Resource

Fitter = Callable[[str, Any], None]
"""What changes parts of a node: called with the node's role and the node object."""


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A place where every_crash ended a node: before a step, a line or a request, with its number in the calm run."""

    kind: str
    number: int
    where: str

    def __str__(self) -> str:
        return f"before {self.kind} {self.number} ({self.where})"


class LabState:
    """The state of a Lab and the look-ups that all its verbs share.

    ``directory`` holds the stores, ``client_settings`` are the settings of all clients, ``parts`` a learner's own in
    the place of mqlab's, ``began_ms`` is the world's time at the start, ``handles`` maps the name of each node to its
    handle in the order of creation.
    """

    def __init__(
        self,
        world: World[Any],
        directory: Path,
        *,
        seed: int,
        began_ms: int,
        client_settings: Mapping[str, Any],
        parts: OwnParts | None = None,
    ) -> None:
        self.world = world
        self.directory = directory
        self.seed = seed
        self.began_ms = began_ms
        self.client_settings = dict(client_settings)
        self.parts = parts or OwnParts()
        self.handles: dict[str, NodeHandle] = {}
        self.resources: dict[str, Resource] = {}
        self.delivery_book = DeliveryBook()
        self._fitters: list[Fitter] = []
        self.crash_point: CrashPoint | None = None  # set in each run of every_crash
        world.on_change.update(self.delivery_book.listeners())

    def fit_nodes(self, fitter: Fitter) -> None:
        """Let ``fitter(role, node)`` change parts of nodes: of those that are up now, and of each later life of a node
        before it starts.
        """
        self._fitters.append(fitter)
        for handle in self.handles.values():
            if handle.is_up:
                fitter(handle.role, handle.node)

    def fitted(self, role: str, build: Build) -> Build:
        """The same way to build a node, followed by what ``fit_nodes`` was given until then."""

        def build_and_fit(ports: Ports) -> Any:
            node = build(ports)
            for fitter in self._fitters:
                fitter(role, node)
            return node

        return build_and_fit

    def plug_in(self, role: str) -> PlugIn:
        """What takes the place of parts of a new broker: a learner's own, in a master."""
        if role != "broker" or not self.parts.of_a_broker:
            return NOTHING_PLUGGED_IN
        from mqlab.lab.parts.plug import BrokerPlug

        return BrokerPlug(self.parts)

    @property
    def now_ms(self) -> int:
        """The world's time: ms since the epoch."""
        return self.world.now_ms

    @property
    def journal(self) -> Journal:
        """The journal of the world, with one record per step; see mqlab.lab.runtime.journal."""
        return self.world.journal

    def simulation(self, verb: str) -> SimWorld:
        """The simulated world; UsageError for a verb that needs it under another driver."""
        if not isinstance(self.world, SimWorld):
            raise UsageError(f"lab.{verb} needs the simulated driver: real threads cannot be stopped between two steps")
        return self.world

    def machine_files(self) -> RealFiles:
        """The files of a new broker's machine. Its disk is a quarter full, whatever the real disk has."""
        return self.world.machine_files()

    def handle_of(self, name: str, *roles: str) -> NodeHandle:
        """The handle of a node in one of these roles; UsageError lists the names of the nodes that have one."""
        handle = self.handles.get(name)
        if handle is None or handle.role not in roles:
            names = [handle.name for handle in self.handles.values() if handle.role in roles]
            raise UsageError(f"there is no {roles[0]} named {name!r}", hint=f"there are: {', '.join(names) or 'none'}")
        return handle

    def node_handle(self, node: NodeHandle | str | Any) -> NodeHandle:
        """The handle of a node that is given as a handle or by its name; UsageError lists the names of all nodes."""
        name = node if isinstance(node, str) else getattr(node, "name", None)
        handle = self.handles.get(name) if isinstance(name, str) else None
        if handle is None:
            raise UsageError(f"there is no node {node!r}", hint=f"nodes: {', '.join(self.handles)}")
        return handle

    def bound(self, action: Callable[..., Any]) -> Callable[[], Any]:
        """The action as a function without parameters: if it has a parameter without default, it is called with this
        Lab.
        """
        parameters = inspect.signature(action).parameters.values()
        return (
            (lambda: action(self)) if any(parameter.default is parameter.empty for parameter in parameters) else action
        )
