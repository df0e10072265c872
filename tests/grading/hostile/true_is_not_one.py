# kind: wrong types
# status: graded
def total(numbers):
    return float(sum(numbers))
