"""Faults on purpose: processes, machines and links that end, come back, slow down, lose frames or drift.

Mirrors: kill -9, a pulled plug, iptables, tc and a bad NTP server. Each fault is a step of its own in the journal.

    kill        sockets close, peers learn at once; files keep what was written
    power_off   silence; files keep only what was synced
    lose_disk   of a broker that is down: no file is left
    start       a new life of the same node on what its files kept

Left out: changed bytes inside a frame.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.runtime.crash_files import CrashFiles, Keep
from mqlab.lab.world.handles import BROKERS, NodeHandle
from mqlab.lab.world.state import LabState
from mqlab.rocketmq.machine.files import LAB_DISK_USED

if TYPE_CHECKING:
    from mqlab.lab.runtime.world import Machine

Node = NodeHandle | str
DISK_FAILS_AT = ("flush", "open", None)


class Faults(LabState):
    """The verbs of a Lab that inject and end faults. A node is given as its handle or its name."""

    def kill(self, node: Node) -> None:
        """End a process at once: its connections close, and its listeners end where they wait."""
        handle = self._end(node, "killed", silent=False)
        self.world.workers[handle.name].leave()

    def power_off(self, node: Node, *, keep: Keep | None = None) -> None:
        """Cut a machine's power: peers receive nothing, and unsynced bytes are lost unless ``keep`` returns True."""
        handle = self._end(node, "powered off", silent=True)
        if isinstance(handle.files, CrashFiles):
            handle.files.power_cut(keep)
        self.world.workers[handle.name].leave()

    def start(self, node: Node) -> None:
        """Start a node that is down: a new process on the same machine and files."""
        handle = self.node_handle(node)
        if handle.is_up:
            raise UsageError(f"{handle.name} is running", hint="kill(...) or power_off(...) ends it")
        sim_node = self.world.nodes[handle.name]
        self._fault(sim_node, "start")
        sim_node.incarnation += 1  # what an earlier life armed or connected does not count any more
        sim_node.alive, sim_node.silent = True, False
        handle.came_back(self.world.ports(sim_node, handle.files))

    def lose_disk(self, broker: Node) -> None:
        """Remove the disk of a broker that is down: it will start with an empty store and empty tables."""
        handle = self.node_handle(broker)
        if handle.role not in BROKERS or handle.is_up:
            raise UsageError(
                f"{handle.status} is {'running' if handle.is_up else 'a ' + handle.role}: only a broker that is down "
                "can lose its disk",
                hint=f'lab.power_off("{handle.name}") first' if handle.is_up else "give a broker's or a slave's name",
            )
        self._fault(self.world.nodes[handle.name], "disk_lost")
        directory = handle.node.store.directory
        if handle.files.exists(directory):
            handle.files.remove_tree(directory)
            handle.files.sync_directory(directory.rpartition("/")[0])

    def partition(self, node: Node, other: Node) -> None:
        """Hold back all frames between two nodes until heal(); they arrive then."""
        first, second = self.node_handle(node).name, self.node_handle(other).name
        if first == second:
            raise UsageError(f"{first} cannot be partitioned from itself", hint="a partition needs two nodes")
        self._fault(self.world.nodes[first], "partition", other=second)
        self.world.network.partition(first, second)

    def heal(self) -> None:
        """End all partitions."""
        self._fault(next(iter(self.world.nodes.values())), "heal")
        self.world.network.heal()

    def slow(self, node: Node, delay: str | int) -> None:
        """Add a delay to every frame that leaves or reaches a node from now on; 0 ends it."""
        sim_node = self.world.nodes[self.node_handle(node).name]
        self._fault(sim_node, "slow", delay_ms=milliseconds(delay))
        sim_node.delay_ms = milliseconds(delay)

    def drop(self, sender: Node, receiver: Node, count: int = 1) -> None:
        """Lose the next frames from one node to another."""
        first, second = self.node_handle(sender).name, self.node_handle(receiver).name
        if first == second:
            raise UsageError(f"{first} sends no frames to itself", hint="give two different nodes")
        if count < 1:
            raise UsageError(f"count must be 1 or more, got {count}", hint="count=1")
        self._fault(self.world.nodes[first], "drop", receiver=second, count=count)
        self.world.network.drop(first, second, count)

    def skew_clock(self, node: Node, skew: str | int) -> None:
        """Set how far a node's clock is ahead ("50ms") or behind ("-50ms", -50) of the world's."""
        sim_node = self.world.nodes[self.node_handle(node).name]
        behind = skew.strip().startswith("-") if isinstance(skew, str) else skew < 0
        size_ms = milliseconds(skew.strip().lstrip("-") if isinstance(skew, str) else abs(skew))
        skew_ms = -size_ms if behind else size_ms
        self._fault(sim_node, "skew_clock", skew_ms=skew_ms)
        sim_node.skew_ms = skew_ms

    def disk_full(self, broker: Node, used: float = 0.95) -> None:
        """Set how full a broker's disk is, 0 to 1. Above 0.9 the broker soon refuses messages; 0 ends the fault."""
        if not 0 <= used <= 1:
            raise UsageError(f"used must be between 0 and 1, got {used}", hint='lab.disk_full("broker-a", 0.95)')
        handle = self._broker_with_a_disk(broker)
        files = handle.files
        assert isinstance(files, CrashFiles)
        self._fault(self.world.nodes[handle.name], "disk_full", used=used)
        files.disk_used = used or LAB_DISK_USED
        if handle.is_up:
            handle.node.store.retention.arm()

    def disk_fails(self, broker: Node, at: str | None = "flush") -> None:
        """Let a broker's disk fail: at="flush" refuses every sync, at="open" every file; None ends the fault."""
        if at not in DISK_FAILS_AT:
            raise UsageError(f"at must be one of {', '.join(map(repr, DISK_FAILS_AT))}, got {at!r}", hint='at="flush"')
        handle = self._broker_with_a_disk(broker)
        files = handle.files
        assert isinstance(files, CrashFiles)
        self._fault(self.world.nodes[handle.name], "disk_fails", at=at or "nothing")
        files.refuse_sync = OSError(errno.EIO, os.strerror(errno.EIO)) if at == "flush" else None
        files.refuse_open = OSError(errno.EMFILE, os.strerror(errno.EMFILE)) if at == "open" else None

    def slow_disk(self, broker: Node, duration: str | int) -> None:
        """Let a broker's disk not answer for a while: writes go to memory, and nothing is synced until it is over."""
        handle = self._broker_with_a_disk(broker)
        if not handle.is_up:
            raise UsageError(f"{handle.status} is down and does not use its disk")
        sim_node, flusher = self.world.nodes[handle.name], handle.node.store.flusher
        self._fault(sim_node, "slow_disk", duration_ms=milliseconds(duration))
        flusher.stalled = True
        sim_node.call_later(milliseconds(duration), flusher.resume, "disk.answers")

    def _broker_with_a_disk(self, broker: Node) -> NodeHandle:
        self.simulation("disk_full, lab.disk_fails and lab.slow_disk")
        handle = self.node_handle(broker)
        if handle.role not in BROKERS:
            raise UsageError(f"{handle.name} is a {handle.role}: only a broker's disk can fill up, fail or hang")
        return handle

    def _end(self, node: Node, word: str, *, silent: bool) -> NodeHandle:
        handle = self.node_handle(node)
        if not handle.is_up:
            raise UsageError(f"{handle.status} is down already", hint=f'lab.start("{handle.name}") brings it back')
        sim_node = self.world.nodes[handle.name]
        self._fault(sim_node, word.replace(" ", "_"))
        # 1. The machine stops: its links end and none of its events will happen.
        sim_node.alive, sim_node.silent = False, silent
        self.world.network.drop_node(sim_node, silent=silent)
        self.world.disarm(sim_node)
        # 2. The process stops: its listeners end, after that its files are closed and its locks released.
        self.world.workers[handle.name].end()
        handle.files.process_ended()
        handle.went_down(word)
        return handle

    def _fault(self, sim_node: Machine, what: str, **values: Any) -> None:
        self.world.open_call(sim_node, "fault")
        self.world.note(sim_node, f"fault.{what}", **values)
