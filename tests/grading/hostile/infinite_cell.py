# kind: infinite loop
# status: timeout
while True:
    pass
