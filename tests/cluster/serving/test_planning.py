"""What a command line and a configuration file become, and what is refused with which words."""

from __future__ import annotations

import itertools
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqlab.cluster.serving import Server, ServingPlan
from mqlab.cluster.serving.config_file import parse_config
from mqlab.cluster.serving.planning import Wanted, plan_of
from mqlab.errors import UsageError
from tests.cluster.serving.served import server_in


def planned(tmp_path: Path, **wanted: Any) -> ServingPlan:
    return plan_of(Wanted(**{"store": tmp_path, **wanted}))[0]


def test_without_a_word_it_is_rocketmqs_default_ports_on_this_machine_alone(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert str(plan.name_server) == "127.0.0.1:9876"
    assert plan.name_servers == ("127.0.0.1:9876",)
    assert [broker.address for broker in plan.brokers] == ["127.0.0.1:10911"]
    assert plan.brokers[0].vip_address == "127.0.0.1:10909"
    assert plan.brokers[0].directory == tmp_path
    assert not plan.reachable_from_outside()


def test_several_brokers_have_names_ports_and_directories_of_their_own(tmp_path: Path) -> None:
    plan = planned(tmp_path, brokers=3)
    assert [broker.config.broker_name for broker in plan.brokers] == ["broker-a", "broker-b", "broker-c"]
    assert [broker.config.listen_port for broker in plan.brokers] == [10911, 10921, 10931]
    assert [broker.directory.name for broker in plan.brokers] == ["broker-a", "broker-b", "broker-c"]


def test_free_ports_do_not_collide(tmp_path: Path) -> None:
    ports = sorted(broker.config.listen_port for broker in planned(tmp_path, broker="127.0.0.1:0", brokers=5).brokers)
    assert all(after - before > 3 for before, after in itertools.pairwise(ports))


def test_rocketmqs_own_file_is_read_and_the_command_line_stands_above_it(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(
        "# a comment\nbrokerClusterName=Lab\nbrokerName = shop\nbrokerId=0\nbrokerIP1=127.0.0.2\nlistenPort=21911\n"
        "deleteWhen=04\nfileReservedTime=48\nbrokerRole=ASYNC_MASTER\nflushDiskType=ASYNC_FLUSH\n"
        "namesrvAddr=10.0.0.7:9876;10.0.0.8:9876\nsendMessageThreadPoolNums=16\n",
        "utf-8",
    )
    plan, unused = plan_of(
        Wanted(store=tmp_path / "store", config=file, only="broker", settings=["flushDiskType=SYNC_FLUSH"])
    )
    (broker,) = plan.brokers
    assert unused == ("sendMessageThreadPoolNums",)
    assert plan.name_server is None
    assert plan.name_servers == ("10.0.0.7:9876", "10.0.0.8:9876")
    assert (broker.config.broker_name, broker.config.broker_cluster_name) == ("shop", "Lab")
    assert (broker.bind, broker.address) == ("127.0.0.1", "127.0.0.2:21911")
    assert (broker.store.file_reserved_time, broker.store.flush_disk_type) == (48, "SYNC_FLUSH")


def test_a_wildcard_is_never_what_clients_are_told(tmp_path: Path) -> None:
    plan = planned(tmp_path, broker="0.0.0.0:10911", namesrv="0.0.0.0:9876")
    assert not plan.brokers[0].advertised.startswith("0.")
    assert plan.reachable_from_outside() == ["0.0.0.0:9876", "0.0.0.0:10911"]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"only": "broker"}, "needs the name servers"),
        ({"namesrv": "nonsense"}, "is not an address"),
        ({"broker": "127.0.0.1:1"}, "cannot use port 1"),
        ({"namesrv": "a:1;b:2"}, "one process has one name server"),
        ({"settings": ["flushDiskTyp=SYNC_FLUSH"]}, "no setting 'flushDiskTyp'"),
        ({"settings": ["listenPort=many"]}, "--set: listenPort is a whole number"),
        ({"settings": ["brokerName=x"], "brokers": 2}, "cannot share one name"),
        ({"broker": "no.such.host.invalid:10911"}, "is not known"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(tmp_path: Path, wanted: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        planned(tmp_path, **wanted)


def test_a_log_outside_of_the_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not in storePathRootDir"):
        planned(tmp_path, settings=["storePathCommitLog=/elsewhere"])


def test_a_line_that_is_no_setting_is_refused_with_its_number() -> None:
    with pytest.raises(UsageError, match=r"broker\.conf, line 2"):
        parse_config(b"listenPort=1\nbrokerName=\\u12\n", "broker.conf")


def test_a_start_that_fails_leaves_no_port_and_no_file_open(tmp_path: Path) -> None:
    plan = planned(tmp_path / "first", broker="127.0.0.1:0", namesrv="127.0.0.1:0")
    assert plan.name_server is not None
    taken = planned(tmp_path / "second", broker=plan.brokers[0].address, namesrv="127.0.0.1:0")
    with Server(plan):
        failing = Server(taken)
        with pytest.raises(UsageError, match="in use"):
            failing.start()
        assert failing.loop.loop.is_closed()
    with Server(taken) as again:  # nothing holds its store or its port
        again.wait_until_registered()


def test_a_file_is_read_as_java_reads_a_property_file() -> None:
    found = parse_config(
        b"! comment\r\n# \xc5\xe4\xd6\xc3\r\n brokerName : b\\u0031 \r\n"
        b"enablePropertyFilter=\\\n   true\nlistenPort 10921\nstorePathRootDir=/\xe9\nwhat is this\n",
        "broker.conf",
    )
    assert found.broker == {"broker_name": "b1", "enable_property_filter": True, "listen_port": 10921}
    assert found.process == {"storePathRootDir": "/é"}
    assert found.unused == ("what",)


def test_blanks_at_the_end_count_for_numbers_and_truth_values_but_not_for_texts() -> None:
    assert parse_config(b"flushDiskType=SYNC_FLUSH \t\n", "broker.conf").store == {"flush_disk_type": "SYNC_FLUSH"}
    for line in (b"listenPort=1 \n", b"enablePropertyFilter=true \n"):
        with pytest.raises(UsageError, match=r"broker\.conf, line 1"):
            parse_config(line, "broker.conf")


def test_a_setting_without_effect_is_the_same_in_a_file_and_on_the_command_line(tmp_path: Path) -> None:
    line, conf = "sendMessageThreadPoolNums=4", tmp_path / "broker.conf"
    conf.write_text(f"{line}\n", encoding="utf-8")
    of_file = plan_of(Wanted(store=tmp_path, namesrv="127.0.0.1:0", broker="127.0.0.1:0", config=conf))[1]
    of_command = plan_of(Wanted(store=tmp_path, namesrv="127.0.0.1:0", broker="127.0.0.1:0", settings=(line,)))[1]
    assert of_file == of_command == ("sendMessageThreadPoolNums",)


def test_a_free_port_is_held_until_the_server_listens_at_it(tmp_path: Path) -> None:
    """Another process that looks for a free port in between cannot take it."""
    with server_in(tmp_path, brokers=2) as server:
        second = server_in(tmp_path / "second")
        broker = second.plan.brokers[0].config.listen_port
        assert second.plan.name_server is not None
        for port in (second.plan.name_server.port, broker - 2, broker, broker + 1):
            with pytest.raises(OSError), socket.create_server(("127.0.0.1", port)):
                pass
        with second:
            second.wait_until_registered()
        server.wait_until_registered()


def test_a_port_that_no_node_uses_is_let_go(tmp_path: Path) -> None:
    plan = planned(tmp_path, broker="127.0.0.1:0", namesrv="127.0.0.1:0")
    other = replace(plan.brokers[0], store=replace(plan.brokers[0].store, ha_listen_port=plan.name_server.port + 7))
    with Server(replace(plan, brokers=(other,))):
        socket.create_server(("127.0.0.1", other.config.listen_port + 1)).close()
