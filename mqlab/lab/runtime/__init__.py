"""Where nodes run: a simulated world and one of real threads, links and sockets, files and the journal of every step.

Mirrors: machines, a JVM and a network. This is the only room with real time, threads, sockets and files.

    sim, threads           two worlds: one heap and virtual time, or a loop thread for each node
    links, sockets         frames between nodes, in memory or through TCP
    files, crash_files     directories: a real one, and one that records what was written and not yet synced
    sim_workers            the threads that run listeners
    journal, kinds         one record per step

Nothing here knows what a message is; that begins in mqlab.lab.world.
"""
