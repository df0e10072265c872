"""Bytes to values and back, without I/O: the contents of a store's files and of the frames between nodes.

Mirrors: the classes of RocketMQ's common, remoting and store modules that encode and decode. Lab 01.

    java_hash properties property_names sys_flag host ids names    the small parts of a message
    message record units property_crc compression                  a message in a program, in the log, in its queue
    codes command framing batch                                    a request or an answer, and its frame
    body bodies java_json                                          its JSON

Left out: LMQ, TLS.
"""
