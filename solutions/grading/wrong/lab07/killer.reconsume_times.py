# exercise: lab07.killer
# belief: every delivery raises reconsume_times
# says: reconsume_times stays as it is
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def never_again(lab):
    database = lab.database("billing")

    def listener(messages, context):
        message, connection = messages[0], database.connect()
        if message.reconsume_times >= 3:
            with connection:
                row = (message.msg_id, message.body)
                connection.execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", row)
            return CONSUME_SUCCESS
        try:
            ask_bank(message, context)
        except BankError:
            return RECONSUME_LATER
        return CONSUME_SUCCESS

    return listener
