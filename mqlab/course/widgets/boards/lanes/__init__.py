"""The lanes board: the events of six orders in threads, in order, or in lanes of one order each, over time.

Lab 05 asks with it who overtakes whom, what a head that fails holds back, and what more threads or queues change.

    runs.py      the story in a Lab, played with the learner's settings: every call, its row, who was overtaken
    board.py     the explorer
"""

from mqlab.course.widgets.boards.lanes.board import LanesBoard, lanes_board
from mqlab.course.widgets.boards.lanes.runs import LanesRun, LanesSettings, play_lanes

__all__ = ["LanesBoard", "LanesRun", "LanesSettings", "lanes_board", "play_lanes"]
