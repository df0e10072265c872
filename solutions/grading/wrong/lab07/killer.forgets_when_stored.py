# exercise: lab07.killer
# belief: what a human has is done: the row can go
# says: An order that a human has is not tried again
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def never_again(lab):
    database = lab.database("billing")

    def listener(messages, context):
        message, connection = messages[0], database.connect()
        one = (message.msg_id,)
        rows = connection.execute("SELECT times FROM started WHERE msg_id = ?", one).fetchall()
        if rows and rows[0][0] >= 3:
            with connection:
                row = (message.msg_id, message.body)
                connection.execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", row)
            with connection:
                connection.execute("DELETE FROM started WHERE msg_id = ?", one)
            return CONSUME_SUCCESS

        with connection:
            connection.execute(
                "INSERT INTO started VALUES (?, 1) ON CONFLICT (msg_id) DO UPDATE SET times = times + 1", one
            )
        status = CONSUME_SUCCESS
        try:
            ask_bank(message, context)
        except BankError:
            status = RECONSUME_LATER
        with connection:
            connection.execute("DELETE FROM started WHERE msg_id = ?", one)
        return status

    return listener
