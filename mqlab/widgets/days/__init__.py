"""Boards over the tables of a day that was collected once: what a knob changes is reckoned in the page.

biography.py     what happened to one message, in the log and in each group, event by event
percentiles.py   two samples whose sizes are moved: the percentile of both together, and the mean of the two
echoes.py        when a message was stored, and when its group was called with it
watermark.py     what a stream that counts by time keeps, gives and drops, batch by batch
"""

from mqlab.widgets.days.biography import BiographyBoard, biography_board, biography_of_run
from mqlab.widgets.days.echoes import EchoChart, echo_chart
from mqlab.widgets.days.percentiles import PercentileBoard, percentile_board
from mqlab.widgets.days.watermark import WatermarkBoard, watermark_board

__all__ = [
    "BiographyBoard",
    "EchoChart",
    "PercentileBoard",
    "WatermarkBoard",
    "biography_board",
    "biography_of_run",
    "echo_chart",
    "percentile_board",
    "watermark_board",
]
