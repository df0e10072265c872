"""What an answer may set when it makes a client, a topic or a group: RocketMQ's settings that name no folder.

``names`` and the lists are used by the table of verbs (mqlab.course.grading.judging.world.verbs).
"""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CLIENT = names(
    """name client_ip instance_name unit_name unit_mode poll_name_server_interval heartbeat_broker_interval
    persist_consumer_offset_interval pull_time_delay_mills_when_exception mq_client_api_timeout enable_trace"""
)
PRODUCER = CLIENT | names(
    """topics create_topic_key default_topic_queue_nums send_msg_timeout send_msg_max_timeout_per_request
    retry_times_when_send_failed retry_times_when_send_async_failed retry_another_broker_when_not_store_ok
    retry_response_codes max_message_size compress_msg_body_over_howmuch compress_type compress_level
    send_latency_fault_enable latency_max not_available_duration start_detector_enable detect_interval detect_timeout
    mq_fault_strategy enable_backpressure_for_async_mode back_pressure_for_async_send_num
    back_pressure_for_async_send_size"""
)
CONSUMER = CLIENT | names(
    "message_model consume_from_where consume_timestamp allocate_message_queue_strategy process_queue"
)
PUSH_CONSUMER = CONSUMER | names(
    """cores consume_thread_min consume_thread_max consume_concurrently_max_span pull_threshold_for_queue
    pull_threshold_size_for_queue pull_threshold_for_topic pull_threshold_size_for_topic pull_interval pull_batch_size
    pull_batch_size_in_bytes consume_message_batch_max_size post_subscription_when_pull max_reconsume_times
    suspend_current_queue_time_millis consume_timeout await_termination_millis_when_shutdown message_timeout
    client_rebalance pop_invisible_time pop_batch_nums pop_threshold_for_queue"""
)
PULL_CONSUMER = CONSUMER | names(
    """broker_suspend_max_time_millis consumer_timeout_millis_when_suspend consumer_pull_timeout_millis
    max_reconsume_times"""
)
LITE_PULL_CONSUMER = CONSUMER | names(
    """pull_batch_size pull_thread_nums pull_threshold_for_all pull_threshold_for_queue pull_threshold_size_for_queue
    consume_max_span auto_commit auto_commit_interval_millis poll_timeout_millis broker_suspend_max_time_millis
    consumer_timeout_millis_when_suspend consumer_pull_timeout_millis topic_metadata_check_interval_millis"""
)
SIMPLE_CONSUMER = CONSUMER | names("await_duration")
TOPIC = names("read_queue_nums write_queue_nums perm order brokers")
GROUP = names(
    """brokers consume_enable consume_broadcast_enable consume_from_min_enable consume_message_orderly
    consume_timeout_minute notify_consumer_ids_changed_enable retry_max_times retry_queue_nums
    which_broker_when_consume_slowly"""
)
