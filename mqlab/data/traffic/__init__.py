"""Traffic of an order platform: large stores in the broker's own format, and small runs through the real runtime.

The platform is described in mqlab.data.traffic.model.

    write("day", messages=1_000_000, brokers=3, seed=7)      store directories, made in seconds
    play(messages=300, seed=7)                               a Lab at the end of a day that really ran
    capstone("anna", secret).write("day")                    a day for one student, sealed by a secret; its truth for
    harm_of(summary.asked)                                   the holder: incidents, and exactly whom they harmed
    with live("live", seed=7, start="9h") as broker: ...     stores that grow while they are read; killed, late, rolled

Left out: what the stores are read with; see mqlab.data.arrow and mqlab.data.spark.
"""

from typing import TYPE_CHECKING

from mqlab.lazy_names import lazy_names

if TYPE_CHECKING:
    from mqlab.data.traffic.growth.live import GrowingBrokers, live
    from mqlab.data.traffic.model import TrafficModel
    from mqlab.data.traffic.playing.day import PlayedDay, play
    from mqlab.data.traffic.trouble.capstone import SealedDay, alarm_day, capstone
    from mqlab.data.traffic.trouble.incident import Incident
    from mqlab.data.traffic.trouble.truth import harm_of
    from mqlab.data.traffic.writing.run import TrafficSummary, write

__all__ = [
    "Incident",
    "GrowingBrokers",
    "PlayedDay",
    "SealedDay",
    "TrafficModel",
    "TrafficSummary",
    "alarm_day",
    "capstone",
    "harm_of",
    "live",
    "play",
    "write",
]

__getattr__, __dir__ = lazy_names(  # a process that grows one store needs none of them
    __name__,
    {
        "growth.live": ("GrowingBrokers", "live"),
        "model": ("TrafficModel",),
        "playing.day": ("PlayedDay", "play"),
        "trouble.capstone": ("SealedDay", "alarm_day", "capstone"),
        "trouble.incident": ("Incident",),
        "trouble.truth": ("harm_of",),
        "writing.run": ("TrafficSummary", "write"),
    },
)
