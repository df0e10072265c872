"""What one client instance is: the access to the cluster, its timers, and the list of who lives in it.

Mirrors: package org.apache.rocketmq.client.impl.factory and the API classes around it. Left out: see mqlab.client.

    mq_client                    one per process: producers and consumers, timers, heartbeats
    broker_calls                 every request as a function
    routes, name_servers         who has which topic, and whom to ask for it
    callbacks, running_info      what brokers and operators ask the client
    statistics                   rates and times that an operator sees
"""
