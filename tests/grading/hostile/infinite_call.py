# kind: infinite loop
# status: timeout
def total(numbers):
    while True:
        pass
