"""Boards for work on an incident: the war room, the claim board, the replay of a repair.

room.py      the explorer: a day in seven charts under one cursor, and a notebook of findings next to it
claims.py    what colleagues say, what the facts say about it, and how each claim was judged
replay.py    a repair plan before it is carried out: what each queue would deliver, for the first time or again
"""

from mqlab.course.widgets.boards.war_room.claims import Claim, ClaimBoard, claim_board
from mqlab.course.widgets.boards.war_room.replay import Replay, replay
from mqlab.course.widgets.boards.war_room.room import WarRoom, war_room

__all__ = ["Claim", "ClaimBoard", "Replay", "WarRoom", "claim_board", "replay", "war_room"]
