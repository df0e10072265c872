# exercise: lab07.stuck
# belief: the broker sends it again by itself when no status comes
# says: holds the offset of its queue
from mqlab import CONSUME_SUCCESS


def pay(messages, context):
    ask_bank(messages[0], context)
    return CONSUME_SUCCESS
