"""The knows board: what name servers, a shop and billing believe about two brokers, over time.

Lab 02 asks with it who learns of a death, a pulled plug or a new queue, and when.

    runs.py      the story in a Lab: something happens to broker-b, all beliefs are noted
    board.py     the explorer
"""

from mqlab.course.widgets.boards.knows.board import KnowsBoard, knows_board
from mqlab.course.widgets.boards.knows.runs import KnowsRun, KnowsSettings, play_knows

__all__ = ["KnowsBoard", "KnowsRun", "KnowsSettings", "knows_board", "play_knows"]
