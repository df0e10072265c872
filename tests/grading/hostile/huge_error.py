# kind: huge values
# status: graded
def total(numbers):
    raise ValueError("<script>alert(1)</script>" * 100_000)
