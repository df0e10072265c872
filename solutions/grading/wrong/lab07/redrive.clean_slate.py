# exercise: lab07.redrive
# belief: all that the retries have written has to go
# says: RETRY_TOPIC has to stay
from mqlab import Message

FORMER = ("RECONSUME_TIME", "MAX_RECONSUME_TIMES", "DELAY", "RETRY_TOPIC", "ORIGIN_MESSAGE_ID")


def redrive(dead, producer, group):
    for letter in {letter.msg_id: letter for letter in dead}.values():
        kept = {name: value for name, value in letter.properties.items() if name not in FORMER}
        producer.send(Message(f"%RETRY%{group}", letter.body, properties=kept))
