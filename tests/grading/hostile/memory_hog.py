# kind: memory hog
# status: graded or timeout
def total(numbers):
    held = []
    while True:
        held.append(bytearray(64 << 20))
