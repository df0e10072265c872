"""Where nodes run: the simulated world and the real one, the journal, faults, and the Lab that a notebook holds.

Mirrors: what a cluster on machines is to RocketMQ; every lab starts here with Lab() or play().
The only home of real time, threads, sockets and real files.
Left out: anything that knows what a message is, but for the Lab's convenience methods.
"""
