"""Where nodes run: a simulated world and one of real threads, links and sockets, files and the journal of every step.

Mirrors: what machines, a JVM and a network are to RocketMQ. The only home of real time, threads, sockets and files.

    sim, threads           two worlds: one heap and virtual time, or a loop thread for each node
    links, sockets         frames between nodes, in memory or through TCP
    files, crash_files     directories: the real one, and one that knows what was written and not yet synced
    sim_workers            the threads that run listeners
    journal, kinds         one record per step

Left out: anything that knows what a message is; that begins in mqlab.lab.
"""
