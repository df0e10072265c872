# kind: infinite loop
# status: timeout
import os
import signal


def total(numbers):
    os.kill(os.getpid(), signal.SIGSTOP)
