# kind: infinite loop
# status: timeout
import time


def total(numbers):
    time.sleep(10**6)
