# kind: breaking out of the text
# status: graded
'''"""'''

TEXT = "'); __import__('os').system('touch mqlab-was-here') #"  # "), globals()) \
"\x00\ud800"


def total(numbers):
    return "'''" + '"""'
