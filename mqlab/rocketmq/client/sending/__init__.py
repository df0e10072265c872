"""What a producer does with a message: choose a queue, build the request, try again, keep a trace.

Mirrors: DefaultMQProducerImpl and the packages latency, selector and trace of RocketMQ's client.

    send_request, compression         a checked message as a request
    send_options                      how a message is to be sent; what hooks see
    queue_selection                   which queue
    fault_strategy, fault_detector    which brokers are slow or gone
    sender                            attempts, hooks, three ways to wait
    back_pressure                     how many asynchronous sends at once
    trace                             what happened, as messages of its own
"""
