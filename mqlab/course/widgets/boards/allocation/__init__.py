"""The allocation board: who reads which queue, before and after every join and leave, and while a queue changes hands.

Lab 03 uses it. ``allocation_board`` makes one.

    division.py     queues, members, rooms and a strategy ─▶ the owners of each queue, as the client divides them
    measures.py     counts, difference, moves, and the fewest moves to a fair division
    handover.py     a member joins or leaves in a Lab ─▶ owners and calls of each queue over time, and their overlaps
    board.py        the explorer, its tables and its page
"""

from mqlab.course.widgets.boards.allocation.board import AllocationBoard, allocation_board
from mqlab.course.widgets.boards.allocation.handover import HandoverRun, HandoverSettings, play_handover
from mqlab.course.widgets.boards.allocation.measures import fewest_moves

__all__ = [
    "AllocationBoard",
    "HandoverRun",
    "HandoverSettings",
    "allocation_board",
    "fewest_moves",
    "play_handover",
]
