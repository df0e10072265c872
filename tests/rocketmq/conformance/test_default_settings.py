"""Every setting has RocketMQ's name and default: held against whole answers to getBrokerConfig and getNamesrvConfig."""

from __future__ import annotations

from pathlib import Path

from mqlab.cluster.serving.rocketmq_settings import NAMES
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.nameserver.config import NameServerConfig
from mqlab.rocketmq.remoting.settings import lines_of
from mqlab.rocketmq.store.config import StoreConfig

REAL = Path(__file__).parent / "fixtures" / "broker-config.txt"
REAL_NAME_SERVER = Path(__file__).parent / "fixtures" / "namesrv-config.txt"
OF_THE_MACHINE = {"brokerClusterName", "brokerName", "listenPort", "haListenPort"}
"""They were set when the real broker was asked."""
SET_THERE = {"timerWheelEnable", "traceTopicEnable", "enablePropertyFilter"}
NULL_THERE = {"haMasterAddress"}
"""RocketMQ's default is null, and null is not shown."""
OWN = {"lockMaxLiveTime", "recoverWithNumpy", "sharpEdges", "utcOffsetMs"}
"""The first is a property of the JVM in RocketMQ."""


def table(lines: list[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines)


def test_every_default_is_rocketmqs() -> None:
    real = table(REAL.read_text("utf-8").splitlines())
    ours = table([*lines_of(BrokerConfig()), *lines_of(StoreConfig())])
    assert {name: (real[name], ours[name]) for name in real.keys() & ours.keys() if real[name] != ours[name]} == {}
    assert ours.keys() - real.keys() == OF_THE_MACHINE | SET_THERE | NULL_THERE | OWN
    assert (ours["timerWheelEnable"], ours["traceTopicEnable"], ours["enablePropertyFilter"]) == (
        "true",
        "false",
        "false",
    )


def test_every_default_of_a_name_server_is_rocketmqs() -> None:
    real, ours = table(REAL_NAME_SERVER.read_text("utf-8").splitlines()), table(lines_of(NameServerConfig()))
    assert {name: (real[name], ours[name]) for name in real.keys() & ours.keys() if real[name] != ours[name]} == {}
    # A port and a path; the last is a constant of RouteInfoManager in RocketMQ.
    assert ours.keys() - real.keys() == {"listenPort", "kvConfigPath", "defaultBrokerChannelExpiredTime"}


def test_every_setting_without_effect_is_known_to_serve() -> None:
    assert table(REAL.read_text("utf-8").splitlines()).keys() - NAMES == set()
