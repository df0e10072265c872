"""Defects of what machines do together: replication, transactions."""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.broker.replication.ha_client import HaClient
from mqlab.rocketmq.broker.replication.ha_server import HaServer
from mqlab.rocketmq.broker.replication.slave_connection import SlaveConnection
from mqlab.rocketmq.broker.replication.slave_synchronize import SlaveSynchronize
from mqlab.rocketmq.broker.transaction_check import DoneHalves, TransactionCheck
from mqlab.rocketmq.broker.transactions import Transactions
from mqlab.rocketmq.promises import Promise
from tests.lab.simulation.mutants.patching import Mutant, Patch, does_nothing, wrapped


def slave_copies_no_offsets(patch: Patch) -> None:
    patch.setattr(SlaveSynchronize, "_copy", lambda *_: Promise.of(None))


def what_was_sent_counts_as_copied(patch: Patch) -> None:
    def copies(self: Any, end_offset: int) -> int:
        return 1 + sum(1 for each in self.connections if max(each.next_offset, each.ack_offset) >= end_offset)

    def sent(original: Any, self: Any) -> Any:
        original(self)
        self._store.replica_waits.look()

    patch.setattr(HaServer, "copies_at", copies)
    wrapped(patch, SlaveConnection, "_send_block", sent)


def one_copy_is_enough(patch: Patch) -> None:
    patch.setattr(HaServer, "copies_at", lambda *_: 2)


def slave_reports_more_than_it_has(patch: Patch) -> None:
    wrapped(
        patch, HaClient, "_report", lambda original, self, offset: original(self, offset + 200 if offset else offset)
    )


def rolled_back_is_committed(patch: Patch) -> None:
    def end(original: Any, self: Any, channel: Any, request: Any, reply: Any) -> Any:
        request.ext_fields["commitOrRollback"] = "8"
        return original(self, channel, request, reply)

    wrapped(patch, Transactions, "end_transaction", end)


def a_half_message_is_committed_twice(patch: Patch) -> None:
    def take(original: Any, self: Any, half_offset: int) -> bool:
        return bool(original(self, half_offset)) and half_offset % 2 == 1

    wrapped(patch, DoneHalves, "take", take)


def an_open_half_message_is_never_asked_for(patch: Patch) -> None:
    does_nothing(patch, TransactionCheck, "look")


def a_young_half_message_is_passed_over(patch: Patch) -> None:
    def verdict(original: Any, self: Any, half: Any, *rest: Any) -> str:
        answer = str(original(self, half, *rest))
        return "next" if answer == "stop" and not half.property_map.get("TRANSACTION_CHECK_TIMES") else answer

    wrapped(patch, TransactionCheck, "_verdict", verdict)


MUTANTS: tuple[Mutant, ...] = (
    slave_copies_no_offsets,
    what_was_sent_counts_as_copied,
    one_copy_is_enough,
    slave_reports_more_than_it_has,
    rolled_back_is_committed,
    a_half_message_is_committed_twice,
    an_open_half_message_is_never_asked_for,
    a_young_half_message_is_passed_over,
)
