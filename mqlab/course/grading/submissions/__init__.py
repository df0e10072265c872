"""Notebooks on their way: handed out, worked on, handed in, read as data and rebuilt."""
