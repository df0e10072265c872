"""What a notebook shows: tables, hexdumps, messages, queues, progress, timelines, diagrams, all with a text twin.

Mirrors: the pages of RocketMQ Dashboard and the output of mqadmin. Every lab shows its runs through these.

    object          text/plain          text/html                       .table()
    Table           aligned columns     <table>                         itself
    Hexdump         bytes and fields    coloured bytes, named fields    one row per field
    Timeline, …     lanes as text       an SVG picture                  one row per moment
    Bars, Curve, …  bars of letters     an SVG picture                  one row per number

Nothing here moves or needs a kernel: it is all still there when the notebook is read as a static page.
Left out: anything interactive (mqlab.course.widgets) and anything that changes a world.
"""

from typing import TYPE_CHECKING

from mqlab.extras import need
from mqlab.lazy_names import lazy_names

if TYPE_CHECKING:
    from mqlab.lab.views.charts import Bars, Curve, Histogram, ranked
    from mqlab.lab.views.table import Row, Table
    from mqlab.lab.views.verdict import verify
    from mqlab.lab.views.view import View

__all__ = ["Bars", "Curve", "Histogram", "Row", "Table", "View", "ranked", "verify"]

need("lab")

__getattr__, __dir__ = lazy_names(  # what judges an answer draws no chart
    __name__,
    {
        "charts": ("Bars", "Curve", "Histogram", "ranked"),
        "table": ("Row", "Table"),
        "verdict": ("verify",),
        "view": ("View",),
    },
)
