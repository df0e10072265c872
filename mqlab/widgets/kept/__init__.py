"""Runs that a board's page has without a kernel, kept in files: to play them would take a second of its first cell.

    runs.py                         reads a board's file; what is not in it is played
    backlog.json, long_poll.json …  a line for each recorded run of a board, as its page gets it

``python -m mqlab.widgets.kept`` plays the runs and writes the files again; the same simulation gives the same bytes.
"""
