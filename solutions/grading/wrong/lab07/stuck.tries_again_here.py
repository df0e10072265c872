# exercise: lab07.stuck
# belief: a retry here and now is better than one in ten seconds
# says: no call may take longer than 10
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER


def pay(messages, context):
    for _ in range(4):
        try:
            ask_bank(messages[0], context, timeout_ms=5000)
            return CONSUME_SUCCESS
        except TimeoutError:
            context.sleep("1s")
    return RECONSUME_LATER
