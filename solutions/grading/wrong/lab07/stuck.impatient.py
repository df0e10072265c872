# exercise: lab07.stuck
# belief: what takes a second hangs
# says: The bank takes up to 3 seconds
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def pay(messages, context):
    try:
        ask_bank(messages[0], context, timeout_ms=1000)
    except TimeoutError:
        return RECONSUME_LATER
    return CONSUME_SUCCESS
