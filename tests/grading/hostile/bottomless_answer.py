# kind: huge values
# status: graded
def total(numbers):
    answer = []
    answer.append(answer)
    return answer
