"""A server in this process, for tests: free ports, small files, one broker unless told otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlab.cluster.runtime import PeerLimits
from mqlab.cluster.serving import Server
from mqlab.cluster.serving.planning import Wanted, plan_of

SMALL = (
    "mappedFileSizeCommitLog=1048576",
    "mappedFileSizeConsumeQueue=20000",
    "maxHashSlotNum=1000",
    "maxIndexNum=4000",
)
FREE = "127.0.0.1:0"


def server_in(store: Path, *settings: str, limits: PeerLimits | None = None, **wanted: Any) -> Server:
    """A server that is not started yet."""
    asked = {"store": store, "namesrv": FREE, "broker": FREE, "settings": (*SMALL, *settings), **wanted}
    plan, unused = plan_of(Wanted(**asked))
    assert not unused
    return Server(plan, limits=limits)
