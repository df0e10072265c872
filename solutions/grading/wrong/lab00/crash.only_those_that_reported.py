# exercise: lab00.crash
# belief: a group exists once it has reported
# says: begins a young queue at offset 0
def stand(rows, groups):
    told = {}
    for row in rows:
        if row["kind"] == "offset.committed" and row["values"]["group"] in groups:
            told[row["values"]["group"]] = row["values"]["queue_offset"]
    return told
