# kind: stack
# status: kernel_died
import sys

sys.setrecursionlimit(10**9)


def total(numbers):
    class Deep:
        def __getattr__(self, name):
            return getattr(self, name + "x")

    return repr(Deep().x)
