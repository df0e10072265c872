# exercise: lab07.redrive
# belief: a message is its body
# says: without it the listener sees %RETRY%billing
from mqlab import Message


def redrive(dead, producer, group):
    for letter in {letter.msg_id: letter for letter in dead}.values():
        producer.send(Message(f"%RETRY%{group}", letter.body, keys=letter.keys))
