# exercise: lab07.redrive
# belief: a redriven message is a new message
# says: A message keeps its UNIQ_KEY
from mqlab import Message

FORMER = ("RECONSUME_TIME", "MAX_RECONSUME_TIMES", "DELAY", "REAL_TOPIC", "REAL_QID", "UNIQ_KEY")


def redrive(dead, producer, group):
    for letter in {letter.msg_id: letter for letter in dead}.values():
        kept = {name: value for name, value in letter.properties.items() if name not in FORMER}
        producer.send(Message(f"%RETRY%{group}", letter.body, properties=kept))
