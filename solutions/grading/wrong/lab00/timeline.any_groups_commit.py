# exercise: lab00.timeline
# belief: an acknowledgement is about a message, whoever gives it
# says: The broker knows that a group is past
def read_day(rows, msg_id, group):
    stored = next(r for r in rows if r["kind"] == "message.stored" and r["values"]["msg_id"] == msg_id)
    offset = stored["values"]["queue_offset"]
    started = [r for r in rows if r["kind"] == "listener.started" and r["values"]["msg_id"] == msg_id]
    seen = [r["now_ms"] for r in started if r["values"]["group"] == group]
    known = [r["now_ms"] for r in rows if r["kind"] == "offset.committed" and r["values"]["queue_offset"] > offset]
    return stored["now_ms"], next(iter(seen), None), next(iter(known), None)
