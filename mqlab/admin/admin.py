"""An operator's tool as a node of its own: every verb is one or more requests through the real codec.

Mirrors: DefaultMQAdminExt, the class behind mqadmin and RocketMQ Dashboard. ``lab.admin``; lab 09 works with it.

    clusters   topics   groups   connections   messages   tracks   traces   resets   dead_letters   brokers   diagnosis
    replication

Left out: ACL users, controllers, static topics, POP.
"""

from __future__ import annotations

from mqlab.admin.brokers import BrokerVerbs
from mqlab.admin.dead_letters import DeadLetterVerbs
from mqlab.admin.diagnosis import DiagnosisVerbs
from mqlab.admin.message_traces import TraceVerbs
from mqlab.admin.message_tracks import TrackVerbs
from mqlab.admin.replication import ReplicationVerbs


class Admin(BrokerVerbs, ReplicationVerbs, DeadLetterVerbs, DiagnosisVerbs, TrackVerbs, TraceVerbs):
    """All verbs. ``ports`` of its node, ``name_servers`` as "ip:port". A verb that fails raises BrokerError,
    RemotingError or UsageError. Mirrors DefaultMQAdminExt."""
