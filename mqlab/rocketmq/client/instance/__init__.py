"""One client instance: its members, its access to the cluster, and its timers.

Mirrors: package org.apache.rocketmq.client.impl.factory and the API classes around it.

    mq_client                    one per process; wires the rest, bottom up
    members                      the producers and consumers that live in it, by group
    cluster_access               requests, routes, which address to use: what all parts are handed
    broker_calls                 every request as a method
    routes, name_servers         which broker has which topic, and which name server is asked
    membership, route_poll       heartbeats to all brokers; routes of all topics in use
    callbacks                    what brokers ask of the client
    rebalance_timer, timers      when it all happens
    service_state                started, running, shut down
    statistics                   rates and times that an operator sees
"""
