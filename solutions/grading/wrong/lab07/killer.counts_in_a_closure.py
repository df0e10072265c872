# exercise: lab07.killer
# belief: what the listener's function keeps is still there when billing is started again
# says: only what is written and
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def never_again(lab):
    database, begun = lab.database("billing"), {}

    def listener(messages, context):
        message = messages[0]
        begun[message.msg_id] = begun.get(message.msg_id, 0) + 1
        if begun[message.msg_id] > 3:
            with database.connect() as connection:
                row = (message.msg_id, message.body)
                connection.execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", row)
            return CONSUME_SUCCESS
        status = CONSUME_SUCCESS
        try:
            ask_bank(message, context)
        except BankError:
            status = RECONSUME_LATER
        del begun[message.msg_id]
        return status

    return listener
