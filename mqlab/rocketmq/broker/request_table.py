"""Which handler answers which request.

Mirrors: BrokerController.registerProcessor and the switches of AdminBrokerProcessor.

    request code ─▶ handler(channel, request, reply)      a slave answers some of them otherwise: replication/roles
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.rocketmq.broker.membership import Membership
from mqlab.rocketmq.broker.pop.service import PopService
from mqlab.rocketmq.broker.pulling import Pulling
from mqlab.rocketmq.broker.putting import Putter
from mqlab.rocketmq.broker.recall import Recall
from mqlab.rocketmq.broker.replication.ha_status import HaStatusHandler
from mqlab.rocketmq.broker.replication.roles import handlers_of_role
from mqlab.rocketmq.broker.replies import Replies
from mqlab.rocketmq.broker.send_back import SendBackHandler
from mqlab.rocketmq.broker.sending import Sending
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tools.assignments import Assignments
from mqlab.rocketmq.broker.tools.cold_reads import ColdReads
from mqlab.rocketmq.broker.tools.group_queries import GroupQueries
from mqlab.rocketmq.broker.tools.member_calls import MemberCalls
from mqlab.rocketmq.broker.tools.message_lookup import MessageLookup
from mqlab.rocketmq.broker.tools.offset_queries import OffsetQueries
from mqlab.rocketmq.broker.tools.offset_resets import OffsetResets
from mqlab.rocketmq.broker.tools.runtime_info import RuntimeInfo
from mqlab.rocketmq.broker.tools.store_admin import StoreAdmin
from mqlab.rocketmq.broker.tools.timer_queries import TimerQueries
from mqlab.rocketmq.broker.tools.topic_admin import TopicAdmin
from mqlab.rocketmq.broker.tools.user_admin import UserAdmin
from mqlab.rocketmq.broker.transactions import Transactions
from mqlab.rocketmq.remoting.endpoint import Handler
from mqlab.rocketmq.remoting.requests import Answering, answering
from mqlab.rocketmq.wire.codes import RequestCode

NOT_AT_THE_SECOND_PORT = frozenset(
    (
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.PEEK_MESSAGE,
        RequestCode.POP_MESSAGE,
        RequestCode.NOTIFICATION,
        RequestCode.POLLING_INFO,
    )
)
"""Whatever waits for messages is unknown at a broker's second ("VIP") port. Mirrors fastRemotingServer."""


def request_table(
    state: BrokerState,
    putter: Putter,
    transactions: Transactions,
    pulling: Pulling,
    membership: Membership,
    ha_status: HaStatusHandler,
    assignments: Assignments,
    pop: PopService,
) -> Mapping[int, Handler]:
    """The handlers of a broker by request code, as its Remoting needs them."""
    handlers = {
        **_messages(state, putter, transactions, pulling),
        **_clients(membership),
        **_offsets(state),
        **_topics_and_groups(state),
        **_group_queries(state),
        **_broker_itself(state, ha_status),
        **_assignments(assignments),
        **_cold_reads(),
        **_users(state),
        **pop.handlers(),
    }
    return {code: answering(handle) for code, handle in handlers_of_role(state, handlers).items()}


def _messages(
    state: BrokerState, putter: Putter, transactions: Transactions, pulling: Pulling
) -> Mapping[RequestCode, Answering]:
    code = RequestCode
    sending, send_back, lookup = (
        Sending(state, putter, transactions),
        SendBackHandler(state, putter),
        MessageLookup(state),
    )
    replies = Replies(state, sending, putter)
    return {
        code.SEND_MESSAGE: sending.send_message,
        code.SEND_MESSAGE_V2: sending.send_message,
        code.SEND_BATCH_MESSAGE: sending.send_message,
        code.SEND_REPLY_MESSAGE: replies.send_reply,
        code.SEND_REPLY_MESSAGE_V2: replies.send_reply,
        code.RESUME_CHECK_HALF_MESSAGE: transactions.resume_check_half_message,
        code.CONSUMER_SEND_MSG_BACK: send_back.consumer_send_msg_back,
        code.END_TRANSACTION: transactions.end_transaction,
        code.RECALL_MESSAGE: Recall(state, putter).recall_message,
        code.PULL_MESSAGE: pulling.pull_message,
        code.LITE_PULL_MESSAGE: pulling.pull_message,
        code.QUERY_MESSAGE: lookup.query_message,
        code.VIEW_MESSAGE_BY_ID: lookup.view_message_by_id,
    }


def _clients(membership: Membership) -> Mapping[RequestCode, Answering]:
    code = RequestCode
    return {
        code.HEART_BEAT: membership.heart_beat,
        code.UNREGISTER_CLIENT: membership.unregister_client,
        code.GET_CONSUMER_LIST_BY_GROUP: membership.get_consumer_list_by_group,
        code.CHECK_CLIENT_CONFIG: membership.check_client_config,
        code.LOCK_BATCH_MQ: membership.lock_batch_mq,
        code.UNLOCK_BATCH_MQ: membership.unlock_batch_mq,
    }


def _offsets(state: BrokerState) -> Mapping[RequestCode, Answering]:
    code = RequestCode
    offsets, resets = OffsetQueries(state), OffsetResets(state)
    return {
        code.QUERY_CONSUMER_OFFSET: offsets.query_consumer_offset,
        code.UPDATE_CONSUMER_OFFSET: offsets.update_consumer_offset,
        code.GET_MAX_OFFSET: offsets.get_max_offset,
        code.GET_MIN_OFFSET: offsets.get_min_offset,
        code.SEARCH_OFFSET_BY_TIMESTAMP: offsets.search_offset_by_timestamp,
        code.GET_EARLIEST_MSG_STORETIME: offsets.get_earliest_msg_storetime,
        code.GET_ALL_CONSUMER_OFFSET: offsets.get_all_consumer_offset,
        code.GET_ALL_DELAY_OFFSET: offsets.get_all_delay_offset,
        code.QUERY_CORRECTION_OFFSET: offsets.query_correction_offset,
        code.INVOKE_BROKER_TO_RESET_OFFSET: resets.invoke_broker_to_reset_offset,
        code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: resets.invoke_broker_to_get_consumer_status,
        code.CLONE_GROUP_OFFSET: resets.clone_group_offset,
    }


def _topics_and_groups(state: BrokerState) -> Mapping[RequestCode, Answering]:
    code = RequestCode
    topics = TopicAdmin(state)
    return {
        code.UPDATE_AND_CREATE_TOPIC: topics.update_and_create_topic,
        code.UPDATE_AND_CREATE_TOPIC_LIST: topics.update_and_create_topic_list,
        code.DELETE_TOPIC_IN_BROKER: topics.delete_topic_in_broker,
        code.GET_ALL_TOPIC_CONFIG: topics.get_all_topic_config,
        code.GET_TOPIC_CONFIG: topics.get_topic_config,
        code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: topics.get_system_topic_list_from_broker,
        code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: topics.update_and_create_subscriptiongroup,
        code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: topics.update_and_create_subscriptiongroup_list,
        code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: topics.get_all_subscriptiongroup_config,
        code.GET_SUBSCRIPTIONGROUP_CONFIG: topics.get_subscriptiongroup_config,
        code.DELETE_SUBSCRIPTIONGROUP: topics.delete_subscriptiongroup,
        code.UPDATE_AND_GET_GROUP_FORBIDDEN: topics.update_and_get_group_forbidden,
    }


def _group_queries(state: BrokerState) -> Mapping[RequestCode, Answering]:
    code = RequestCode
    groups, calls = GroupQueries(state), MemberCalls(state)
    return {
        code.GET_TOPIC_STATS_INFO: groups.get_topic_stats_info,
        code.GET_CONSUME_STATS: groups.get_consume_stats,
        code.GET_BROKER_CONSUME_STATS: groups.get_broker_consume_stats,
        code.QUERY_CONSUME_TIME_SPAN: groups.query_consume_time_span,
        code.QUERY_CONSUME_QUEUE: groups.query_consume_queue,
        code.GET_CONSUMER_CONNECTION_LIST: groups.get_consumer_connection_list,
        code.GET_PRODUCER_CONNECTION_LIST: groups.get_producer_connection_list,
        code.GET_ALL_PRODUCER_INFO: groups.get_all_producer_info,
        code.QUERY_TOPIC_CONSUME_BY_WHO: groups.query_topic_consume_by_who,
        code.QUERY_TOPICS_BY_CONSUMER: groups.query_topics_by_consumer,
        code.QUERY_SUBSCRIPTION_BY_CONSUMER: groups.query_subscription_by_consumer,
        code.GET_CONSUMER_RUNNING_INFO: calls.get_consumer_running_info,
        code.CONSUME_MESSAGE_DIRECTLY: calls.consume_message_directly,
    }


def _broker_itself(state: BrokerState, ha_status: HaStatusHandler) -> Mapping[RequestCode, Answering]:
    code = RequestCode
    info, store, timer = RuntimeInfo(state), StoreAdmin(state), TimerQueries(state)
    return {
        code.GET_BROKER_RUNTIME_INFO: info.get_broker_runtime_info,
        code.GET_TIMER_CHECK_POINT: timer.get_timer_check_point,
        code.GET_TIMER_METRICS: timer.get_timer_metrics,
        code.GET_BROKER_HA_STATUS: ha_status.get_broker_ha_status,
        code.VIEW_BROKER_STATS_DATA: info.view_broker_stats_data,
        code.GET_BROKER_CONFIG: info.get_broker_config,
        code.UPDATE_BROKER_CONFIG: info.update_broker_config,
        code.CLEAN_EXPIRED_CONSUMEQUEUE: store.clean_expired_consumequeue,
        code.CLEAN_UNUSED_TOPIC: store.clean_unused_topic,
        code.DELETE_EXPIRED_COMMITLOG: store.delete_expired_commitlog,
    }


def _assignments(assignments: Assignments) -> Mapping[RequestCode, Answering]:
    code = RequestCode
    return {
        code.QUERY_ASSIGNMENT: assignments.query_assignment,
        code.SET_MESSAGE_REQUEST_MODE: assignments.set_message_request_mode,
        code.GET_ALL_MESSAGE_REQUEST_MODE: assignments.get_all_message_request_mode,
    }


def _cold_reads() -> Mapping[RequestCode, Answering]:
    code, limits = RequestCode, ColdReads()
    return {
        code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: limits.update,
        code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: limits.remove,
        code.GET_COLD_DATA_FLOW_CTR_INFO: limits.show,
        code.SET_COMMITLOG_READ_MODE: limits.set_read_mode,
    }


def _users(state: BrokerState) -> Mapping[RequestCode, Answering]:
    code, users = RequestCode, UserAdmin(state)
    return {
        code.AUTH_CREATE_USER: users.create,
        code.AUTH_UPDATE_USER: users.update,
        code.AUTH_DELETE_USER: users.delete,
        code.AUTH_GET_USER: users.get,
        code.AUTH_LIST_USER: users.list,
    }
