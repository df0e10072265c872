# exercise: lab07.rewrite
# belief: ORIGIN_MESSAGE_ID is the copy that failed last
# says: it is set once and
def give_back(message, group, max_reconsume_times, delay_level):
    properties = dict(message.properties)
    properties.setdefault("RETRY_TOPIC", message.topic)
    properties["ORIGIN_MESSAGE_ID"] = message.offset_msg_id
    properties["WAIT"] = "false"
    count = message.reconsume_times
    if count >= max_reconsume_times or delay_level < 0:
        properties["DELAY"] = "0"
        return f"%DLQ%{group}", 0, count + 1, properties
    level = min(delay_level or 3 + count, 18)
    properties |= {"DELAY": str(level), "REAL_TOPIC": f"%RETRY%{group}", "REAL_QID": "0"}
    return "SCHEDULE_TOPIC_XXXX", level - 1, count + 1, properties
