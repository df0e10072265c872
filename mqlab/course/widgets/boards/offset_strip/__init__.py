"""The offset strip: one queue, a listener whose calls the learner ends, and where its offset is known.

Lab 04 uses it. ``offset_strip`` makes one.

    actions.py    finish, wait, persist, save, crash: each done to a real broker and a real consumer in a Lab
    picture.py    the queue at one moment: the messages, the ProcessQueue, the offsets in its three places
    strip.py      the explorer, its tables and its page
"""

from mqlab.course.widgets.boards.offset_strip.actions import OffsetSettings
from mqlab.course.widgets.boards.offset_strip.strip import OffsetStripBoard, offset_strip

__all__ = ["OffsetSettings", "OffsetStripBoard", "offset_strip"]
