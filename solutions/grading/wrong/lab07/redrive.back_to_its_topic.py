# exercise: lab07.redrive
# belief: a message goes back where it came from
# says: What is sent to the topic, every group gets again
from mqlab import Message

FORMER = ("RECONSUME_TIME", "MAX_RECONSUME_TIMES", "DELAY", "REAL_TOPIC", "REAL_QID")


def redrive(dead, producer, group):
    for letter in {letter.msg_id: letter for letter in dead}.values():
        kept = {name: value for name, value in letter.properties.items() if name not in FORMER}
        producer.send(Message(letter.properties["RETRY_TOPIC"], letter.body, properties=kept))
