"""The tag-trap board: two members of one group with different tags, and each message's way through both filters.

Lab 06 asks with it what each member gets, what none gets, and what monitoring says.

    runs.py     the story in a Lab, played with the learner's settings, and what happened in it
    board.py    the explorer
"""
