"""Clusters with one defect on purpose, and the history of what happens in them: for those who learn to find causes.

Mirrors: nothing of RocketMQ.

    cluster("A")           a cluster with a defect that its name decides     clusters, days
    history(lab)           what its nodes noted, as plain rows               history
    fitting                how a defect gets into a running node
    of_the_store           of_the_broker   of_the_client                     the defects that there are
"""

from mqlab.lab.simulation.planted.clusters import PlantedCluster, cluster
from mqlab.lab.simulation.planted.history import history

__all__ = ["PlantedCluster", "cluster", "history"]
