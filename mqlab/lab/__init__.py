"""The Lab: name servers, brokers and clients in one world, what can be done to them, and what they did.

Mirrors: a RocketMQ cluster with its machines and its operator. Every notebook starts here with Lab() or play().

    lab, cluster, clients, handles      the world and the nodes in it
    story, crashes                      a story that stops anywhere; one run per place at which a node could die
    faults, schedule, shared_resources  kill, partition and slow down; send at a rate; databases and resources
    deliveries, absences, progress      what listeners were given, what they were not, and how far each group is
    what_happened                       the views of all this

Left out: the drivers, see mqlab.runtime.
"""
