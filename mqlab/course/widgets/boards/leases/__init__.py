"""The lease board: orders on lease to popping members that work, hang or die.

Lab 15 asks with it what is out, what came back, and what the lag says meanwhile.

    runs.py      the story in a Lab: eight orders, one or two members, leases from the journal
    board.py     the explorer
"""

from mqlab.course.widgets.boards.leases.board import LeaseBoard, lease_board
from mqlab.course.widgets.boards.leases.runs import LeaseRun, LeaseSettings, play_leases

__all__ = ["LeaseBoard", "LeaseRun", "LeaseSettings", "lease_board", "play_leases"]
