# kind: memory hog
# status: timeout
HELD = []


def total(numbers):
    while True:
        try:
            HELD.append(b"x" * (64 << 20))
        except MemoryError:
            pass
