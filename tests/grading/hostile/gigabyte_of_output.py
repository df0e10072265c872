# kind: 1 GB of output
# status: graded or timeout
import os
import sys


def total(numbers):
    block = "x" * (1 << 20)
    for _ in range(1024):
        print(block)
        sys.stderr.write(block)
        os.write(1, b"y")
    return None
