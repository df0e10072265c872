# exercise: lab07.three
# belief: a process lives long enough to count to three
# says: this is the third, and it is the last
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


class ThreeTimes:
    def __init__(self, database):
        self.database, self.failures = database, {}

    def consume_message(self, messages, context):
        message = messages[0]
        try:
            ask_bank(message, context)
        except BankError:
            self.failures[message.msg_id] = self.failures.get(message.msg_id, 0) + 1
            if self.failures[message.msg_id] < 3:
                return RECONSUME_LATER
            with self.database.connect() as connection:
                row = (message.msg_id, message.body)
                connection.execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", row)
        return CONSUME_SUCCESS


def three_times(lab):
    class Listener(ThreeTimes):
        def __init__(self):
            super().__init__(lab.database("billing"))

    return Listener
