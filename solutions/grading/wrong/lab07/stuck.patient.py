# exercise: lab07.stuck
# belief: a minute is a short time limit
# says: holds the offset of its queue
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def pay(messages, context):
    try:
        ask_bank(messages[0], context, timeout_ms=60_000)
    except TimeoutError:
        return RECONSUME_LATER
    return CONSUME_SUCCESS
