# exercise: lab07.redrive
# belief: a message is among the dead letters once
# says: however often it has died
from mqlab import Message

FORMER = ("RECONSUME_TIME", "MAX_RECONSUME_TIMES", "DELAY", "REAL_TOPIC", "REAL_QID")


def redrive(dead, producer, group):
    for letter in dead:
        kept = {name: value for name, value in letter.properties.items() if name not in FORMER}
        producer.send(Message(f"%RETRY%{group}", letter.body, properties=kept))
