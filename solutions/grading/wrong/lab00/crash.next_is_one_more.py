# exercise: lab00.crash
# belief: the committed offset is the last one done, so the next is one more
# says: add nothing to what the broker was told
def stand(rows, groups):
    told = dict.fromkeys(groups, 0)
    for row in rows:
        if row["kind"] == "offset.committed" and row["values"]["group"] in told:
            told[row["values"]["group"]] = row["values"]["queue_offset"] + 1
    return told
