"""Charts of a day: lines and areas over its time, spans, bars in parts, cells; for notebooks and for the Spark report.

Mirrors: the trend charts of RocketMQ Dashboard.

    Lines({"p50": latency, "p99": slowest}, unit="ms")        one line each; broken where a value is not known
    Areas({"paid": paid, "shipped": shipped})                 on each other, so that the upper edge is the sum
    Spans([Span("burst", start_ms, end_ms, "told")])          from when to when
    Stacked({"billing": {"consumed": 97, "lost": 3}})         a level bar each, divided
    Heat({"broker-a": {"0": 12, "1": 9}})                     stronger for more
    Ecdf({"queue 0": waits_ms})                               the share that was at most so slow; None: not yet

A line or an area takes (time, value) pairs, a mapping or a pandas Series; a time is in ms or a pandas time.
Left out: scales chosen by the caller; durations (unit="ms") are drawn logarithmically, counts linearly.
"""

from mqlab.lab.views.day_charts.drawing import DrawnSpan
from mqlab.lab.views.day_charts.ecdf import Ecdf
from mqlab.lab.views.day_charts.in_parts import Heat, Spans, Stacked
from mqlab.lab.views.day_charts.over_time import Areas, Lines

__all__ = ["Areas", "Ecdf", "Heat", "Lines", "DrawnSpan", "Spans", "Stacked"]
