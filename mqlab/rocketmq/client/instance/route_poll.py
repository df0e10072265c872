"""Asks the name server again and again for the routes of all topics that the members of this client use.

Mirrors: the task updateTopicRouteInfoFromNameServer of MQClientInstance, every 30 s.
"""

from __future__ import annotations

from mqlab.errors import MqlabError
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.instance.members import Members
from mqlab.rocketmq.promises import Flow, flow


class RoutePoll:
    """One round at a time over the topics of all members; ``tick`` is what the timer calls."""

    def __init__(self, cluster: ClusterAccess, members: Members) -> None:
        self._cluster = cluster
        self._members = members
        self._under_way = False

    def tick(self) -> None:
        """Begin a round, unless one is under way."""
        background(self._cluster.ports, self._round(), "route poll")

    @flow
    def _round(self) -> Flow[None]:
        if self._under_way:
            return
        self._under_way = True
        try:
            for topic in self._members.topics():
                yield self._cluster.update_route(topic)
        except MqlabError as error:  # the rest of this round is skipped; the routes learned before stay in use
            self._cluster.ports.note("route_poll.failed", error=error.text)
        self._under_way = False
