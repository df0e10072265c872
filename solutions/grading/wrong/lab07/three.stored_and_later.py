# exercise: lab07.three
# belief: storing is enough, the status does not matter then
# says: this is the third, and it is the last
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def three_times(lab):
    database = lab.database("billing")

    def listener(messages, context):
        message = messages[0]
        try:
            ask_bank(message, context)
        except BankError:
            if message.reconsume_times < 2:
                return RECONSUME_LATER
            with database.connect() as connection:
                row = (message.msg_id, message.body)
                connection.execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", row)
            return RECONSUME_LATER
        return CONSUME_SUCCESS

    return listener
