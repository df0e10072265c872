# exercise: lab07.killer
# belief: billing can look up what its former lives were given
# says: an answer cannot use LabDatabases.deliveries
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def never_again(lab):
    database = lab.database("billing")

    def listener(messages, context):
        message = messages[0]
        rows = [row for row in lab.deliveries("billing", absences=False) if row.msg_id == message.msg_id]
        if len([row for row in rows if row.status == "RUNNING"]) > 3:
            with database.connect() as connection:
                row = (message.msg_id, message.body)
                connection.execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", row)
            return CONSUME_SUCCESS
        try:
            ask_bank(message, context)
        except BankError:
            return RECONSUME_LATER
        return CONSUME_SUCCESS

    return listener
