# exercise: lab07.three
# belief: reconsume_times is 1 at the first delivery, so 1 more is enough
# says: An order gets three deliveries
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def three_times(lab):
    database = lab.database("billing")

    def listener(messages, context):
        message = messages[0]
        try:
            ask_bank(message, context)
        except BankError:
            if message.reconsume_times < 1:
                return RECONSUME_LATER
            with database.connect() as connection:
                row = (message.msg_id, message.body)
                connection.execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", row)
        return CONSUME_SUCCESS

    return listener
