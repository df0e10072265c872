# exercise: lab07.three
# belief: level -1 sends it to the dead letters, and a human looks there
# says: is stored for a human
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def three_times(lab):
    def listener(messages, context):
        message = messages[0]
        try:
            ask_bank(message, context)
        except BankError:
            if message.reconsume_times < 2:
                return RECONSUME_LATER
            context.delay_level_when_next_consume = -1
            return RECONSUME_LATER
        return CONSUME_SUCCESS

    return listener
