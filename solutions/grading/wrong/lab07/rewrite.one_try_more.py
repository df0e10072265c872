# exercise: lab07.rewrite
# belief: a message is dead when it was retried more often than max_reconsume_times
# says: has reached max_reconsume_times
def give_back(message, group, max_reconsume_times, delay_level):
    properties = dict(message.properties)
    properties.setdefault("RETRY_TOPIC", message.topic)
    properties.setdefault("ORIGIN_MESSAGE_ID", message.offset_msg_id)
    properties["WAIT"] = "false"
    count = message.reconsume_times
    if count > max_reconsume_times or delay_level < 0:
        properties["DELAY"] = "0"
        return f"%DLQ%{group}", 0, count + 1, properties
    level = min(delay_level or 3 + count, 18)
    properties |= {"DELAY": str(level), "REAL_TOPIC": f"%RETRY%{group}", "REAL_QID": "0"}
    return "SCHEDULE_TOPIC_XXXX", level - 1, count + 1, properties
