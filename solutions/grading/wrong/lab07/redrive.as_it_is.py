# exercise: lab07.redrive
# belief: a dead letter is sent on as it is
# says: it is dead again at once
from mqlab import Message

FORMER = ()


def redrive(dead, producer, group):
    for letter in {letter.msg_id: letter for letter in dead}.values():
        kept = {name: value for name, value in letter.properties.items() if name not in FORMER}
        producer.send(Message(f"%RETRY%{group}", letter.body, properties=kept))
