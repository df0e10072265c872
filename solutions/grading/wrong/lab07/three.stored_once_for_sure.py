# exercise: lab07.three
# belief: the third delivery happens once
# says: storing it twice has to be harmless
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
                connection.execute("INSERT INTO for_a_human VALUES (?, ?)", row)
        return CONSUME_SUCCESS

    return listener
