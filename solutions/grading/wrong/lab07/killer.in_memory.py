# exercise: lab07.killer
# belief: a dictionary remembers
# says: only what is written and
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


class NeverAgain:
    lab = None

    def __init__(self):
        self.begun = {}

    def consume_message(self, messages, context):
        message = messages[0]
        self.begun[message.msg_id] = self.begun.get(message.msg_id, 0) + 1
        status = CONSUME_SUCCESS
        if self.begun[message.msg_id] > 3:
            with self.lab.database("billing").connect() as connection:
                row = (message.msg_id, message.body)
                connection.execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", row)
            return status
        try:
            ask_bank(message, context)
        except BankError:
            status = RECONSUME_LATER
        del self.begun[message.msg_id]
        return status


def never_again(lab):
    class Listener(NeverAgain):
        pass

    Listener.lab = lab
    return Listener
