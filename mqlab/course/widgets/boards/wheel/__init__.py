"""The wheel board: reminders in a timer wheel that turns, slot by slot, and what is left when one of its files is not.

Lab 08c asks with it which slot a reminder is in, how often it is stored on its way, and what a recall takes back.

    runs.py      the story in a Lab: six reminders, the wheel looked at every half second
    board.py     the explorer
"""

from mqlab.course.widgets.boards.wheel.board import WheelBoard, wheel_board
from mqlab.course.widgets.boards.wheel.runs import WheelRun, WheelSettings, play_wheel

__all__ = ["WheelBoard", "WheelRun", "WheelSettings", "play_wheel", "wheel_board"]
