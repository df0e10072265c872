# exercise: lab00.timeline
# belief: a message is stored when its producer says so
# says: stored when the broker writes it
def read_day(rows, msg_id, group):
    stored = next(r for r in rows if r["kind"] == "message.stored" and r["values"]["msg_id"] == msg_id)
    sent = next(r for r in rows if r["kind"] == "message.sent" and r["values"]["msg_id"] == msg_id)
    offset = stored["values"]["queue_offset"]
    ours = [r for r in rows if r["values"].get("group") == group]
    seen = [r["now_ms"] for r in ours if r["kind"] == "listener.started" and r["values"]["msg_id"] == msg_id]
    known = [r["now_ms"] for r in ours if r["kind"] == "offset.committed" and r["values"]["queue_offset"] > offset]
    return sent["now_ms"], next(iter(seen), None), next(iter(known), None)
