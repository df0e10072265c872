"""Bytes to values and back, without I/O: what stands in the files of a store and in the frames between the nodes.

Mirrors: the classes of RocketMQ's common, remoting and store modules that encode and decode. Lab 01.

    java_hash properties property_names sys_flag ids    the small parts of a message
    message record units                                 a message in a program, in the commit log, in queue and index
    codes command framing bodies java_json               a request or an answer, its frame, its JSON

Left out: POP, LMQ, the timer wheel's files, TLS.
"""
