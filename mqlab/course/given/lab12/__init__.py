"""Streams over films of what brokers stored, for lab 12."""
