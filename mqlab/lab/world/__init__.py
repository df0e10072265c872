"""The Lab: name servers, brokers and clients in one world, verbs that act on them, and what they did.

Mirrors: a RocketMQ cluster with its machines and its operator. Every notebook starts here with Lab() or play().

    lab, cluster, clients, handles      the world and the nodes in it
    story, crashes                      a story that stops anywhere; one run per place at which a node can crash
    faults, schedule, shared_resources  kill, partition and slow down; send at a rate; databases and resources
    deliveries, absences, progress      which messages listeners got and did not get, and the progress of each group
    what_happened                       tables and pictures of all this
    state                               what all of these work on

The drivers are in mqlab.lab.runtime.
"""
