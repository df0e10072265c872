"""The operator's tool: mqadmin's verbs, with answers that are dataclasses and print as tables.

Mirrors: DefaultMQAdminExt. ``lab.admin`` is one; `mqlab admin` prints its answers.

    admin                                  the table of all verbs
    clusters, brokers, replication         the cluster, its brokers, masters and slaves
    topics, groups, offset_resets          topics, consumer groups and their offsets
    connections, diagnosis                 connected clients and what looks wrong with them
    messages, message_tracks, message_traces, dead_letters      single messages and what happened to them
    requests                               how a verb asks; how an answer looks: mqlab.rocketmq.answers
"""

from mqlab.rocketmq.admin.admin import Admin

__all__ = ["Admin"]
