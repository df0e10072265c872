# exercise: lab00.crash
# belief: a group goes on where its consumer was
# says: not from what its client remembered
def stand(rows, groups):
    told = dict.fromkeys(groups, 0)
    for row in rows:
        if row["kind"] in ("offset.updated", "offset.committed") and row["values"]["group"] in told:
            told[row["values"]["group"]] = row["values"]["queue_offset"]
    return told
