# exercise: lab00.crash
# belief: what the listener has returned is acknowledged
# says: not from what its client remembered
def stand(rows, groups):
    done = dict.fromkeys(groups, 0)
    for row in rows:
        if row["kind"] == "listener.returned" and row["values"]["group"] in done:
            done[row["values"]["group"]] = max(done[row["values"]["group"]], row["values"]["queue_offset"] + 1)
    return done
