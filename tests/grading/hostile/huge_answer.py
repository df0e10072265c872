# kind: huge values
# status: graded or timeout
def total(numbers):
    return [0] * 10_000_000
