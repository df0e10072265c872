"""The operator's tool: the table of its verbs. Each verb is a function of the module that is named after its subject.

Mirrors: DefaultMQAdminExt, the class behind mqadmin and RocketMQ Dashboard. ``lab.admin`` is one.

    lab.admin.examine_topic_route_info("orders")   is   topics.examine_topic_route_info(lab.admin, "orders")

Left out: rights of users, controllers, static topics.
"""

from __future__ import annotations

from mqlab.rocketmq.admin import (
    brokers,
    clusters,
    connections,
    dead_letters,
    diagnosis,
    groups,
    leases,
    message_traces,
    message_tracks,
    messages,
    offset_resets,
    replication,
    topics,
    users,
)
from mqlab.rocketmq.admin.requests import AdminNode


class Admin(AdminNode):
    """All verbs of the operator. ``name_servers`` are addresses "ip:port"; ``ports`` are those of the tool's own node.

    A verb that fails raises BrokerError, RemotingError or UsageError. Mirrors DefaultMQAdminExt.
    """

    # the cluster and the name servers
    examine_broker_cluster_info = clusters.examine_broker_cluster_info
    wipe_write_perm = clusters.wipe_write_perm
    add_write_perm = clusters.add_write_perm
    put_kv_config = clusters.put_kv_config
    get_kv_config = clusters.get_kv_config
    delete_kv_config = clusters.delete_kv_config
    get_kv_list_by_namespace = clusters.get_kv_list_by_namespace

    # single brokers
    cluster_list = brokers.cluster_list
    fetch_broker_runtime_stats = brokers.fetch_broker_runtime_stats
    view_broker_stats_data = brokers.view_broker_stats_data
    stats_all = brokers.stats_all
    get_broker_config = brokers.get_broker_config
    update_broker_config = brokers.update_broker_config
    delete_expired_commit_log = brokers.delete_expired_commit_log
    clean_expired_consumer_queue = brokers.clean_expired_consumer_queue
    clean_unused_topic = brokers.clean_unused_topic
    ha_status = replication.ha_status

    # users of brokers that ask for a name
    create_user = users.create_user
    update_user = users.update_user
    delete_user = users.delete_user
    get_user = users.get_user
    list_user = users.list_user

    # topics
    fetch_all_topic_list = topics.fetch_all_topic_list
    examine_topic_route_info = topics.examine_topic_route_info
    examine_topic_config = topics.examine_topic_config
    examine_topic_stats = topics.examine_topic_stats
    create_topic = topics.create_topic
    update_topic = topics.update_topic
    delete_topic = topics.delete_topic
    query_topic_consume_by_who = topics.query_topic_consume_by_who

    # consumer groups
    create_and_update_subscription_group_config = groups.create_and_update_subscription_group_config
    examine_subscription_group_config = groups.examine_subscription_group_config
    delete_subscription_group = groups.delete_subscription_group
    query_all_groups = groups.query_all_groups
    examine_consume_stats = groups.examine_consume_stats
    consumer_progress = groups.consumer_progress
    lag = groups.lag
    query_consume_time_span = groups.query_consume_time_span
    clone_group_offset = groups.clone_group_offset
    reset_offset_by_timestamp = offset_resets.reset_offset_by_timestamp
    skip_accumulated_message = offset_resets.skip_accumulated_message
    reset_offset_of_queue = offset_resets.reset_offset_of_queue

    # POP and timed messages
    set_message_request_mode = leases.set_message_request_mode
    message_request_modes = leases.message_request_modes
    timer_check_point = leases.timer_check_point
    timer_metrics = leases.timer_metrics

    # connected clients
    examine_consumer_connection_info = connections.examine_consumer_connection_info
    examine_producer_connection_info = connections.examine_producer_connection_info
    get_all_producer_info = connections.get_all_producer_info
    get_consumer_running_info = connections.get_consumer_running_info
    consumer_status = connections.consumer_status
    get_consume_status = connections.get_consume_status
    consume_message_directly = connections.consume_message_directly
    consumer_problems = diagnosis.consumer_problems

    # messages
    view_message = messages.view_message
    query_message = messages.query_message
    query_message_by_unique_key = messages.query_message_by_unique_key
    query_message_by_time = messages.query_message_by_time
    query_message_by_offset = messages.query_message_by_offset
    send_message = messages.send_message
    message_track_detail = message_tracks.message_track_detail
    view_trace = message_traces.view_trace
    query_dlq = dead_letters.query_dlq
    resend_dlq = dead_letters.resend_dlq
