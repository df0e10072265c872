"""The long-poll scope: pulls that the broker holds, next to a program that asks every n milliseconds.

Lab 06 asks with it how soon a message arrives, how many requests that costs, and what wakes a held pull.

    runs.py     both readers in a Lab, played with the learner's settings, and what happened
    scope.py    the explorer
"""
