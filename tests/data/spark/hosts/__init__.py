"""Spark on several hosts: each with an address, a file system and failures of its own."""
