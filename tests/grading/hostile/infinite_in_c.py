# kind: infinite loop
# status: timeout
import re


def total(numbers):
    return re.match("(a*)*b", "a" * 60)
