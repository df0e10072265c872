"""A name server and brokers for other programs: real TCP, real time, RocketMQ's own configuration files.

Mirrors: mqnamesrv and mqbroker (NamesrvStartup, BrokerStartup). ``mqlab serve`` is its command line.

    plan    what is to run, and where: addresses, store directories, settings
    Server  builds the nodes of a plan on one event loop, starts them, and ends them cleanly

Left out: the controller, containers with several brokers of one configuration.
"""

from mqlab.cluster.serving.plan import BrokerPlan, ServingPlan
from mqlab.cluster.serving.server import Server

__all__ = ["BrokerPlan", "Server", "ServingPlan"]
