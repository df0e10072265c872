"""`mqlab serve` as a process: its port file, its ends, what survives, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import mqlab
from mqlab import Message
from mqlab.cli import main
from mqlab.errors import RemotingError
from mqlab.lab.inspector import StoreInspector
from tests.cluster.serving.served import FREE, SMALL

PATIENCE = 60.0  # seconds
REPOSITORY = Path(__file__).parents[3]
CERTIFICATE = Path(__file__).with_name("test_server.pem")  # of nobody but these tests
SETTINGS = [part for setting in SMALL for part in ("--set", setting)]


@contextmanager
def serving(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The process and what its port file says; it is killed at the end if it still runs."""
    port_file = directory / "ports.json"
    port_file.unlink(missing_ok=True)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "mqlab.cli", "serve", "--store", str(directory / "store")),
            *("--port-file", str(port_file), *SETTINGS, *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    try:
        end = time.monotonic() + PATIENCE
        while not port_file.exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < end, "the server is not ready in time"
            time.sleep(0.02)
        yield process, json.loads(port_file.read_text("utf-8"))
    finally:
        process.kill()
        process.communicate()


ANYWHERE = ("--namesrv", FREE, "--broker", FREE)


def send(addresses: dict[str, Any], *bodies: bytes) -> None:
    with mqlab.connect(addresses["namesrv"]) as cluster:
        producer = cluster.producer("shop")
        for body in bodies:
            assert producer.send(Message("orders", body, keys="k")).send_status == "SEND_OK"


def stored(directory: Path) -> list[bytes]:
    return [message.body for message in StoreInspector(directory / "store").messages() if message.topic == "orders"]


def test_it_ends_cleanly_at_sigterm_and_its_messages_are_there_at_the_next_start(tmp_path: Path) -> None:
    with serving(tmp_path, *ANYWHERE) as (process, addresses):
        assert [broker["name"] for broker in addresses["brokers"]] == ["broker-a"]
        send(addresses, b"before")
        process.send_signal(signal.SIGTERM)
        out, log = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "")
    assert "ready" in log
    assert "Traceback" not in log
    assert not (tmp_path / "store" / "abort").exists()
    assert not (tmp_path / "ports.json").exists()
    with serving(tmp_path, *ANYWHERE) as (process, addresses):
        with mqlab.connect(addresses["namesrv"]) as cluster:
            assert [message.body for message in cluster.admin.query_message("orders", "k")] == [b"before"]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


def test_killed_it_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    bodies = [b"%d" % number for number in range(50)]
    with serving(tmp_path, *ANYWHERE, "--set", "flushDiskType=SYNC_FLUSH") as (process, addresses):
        send(addresses, *bodies)
        process.kill()
        process.wait(PATIENCE)
    with serving(tmp_path, *ANYWHERE) as (process, addresses):
        with mqlab.connect(addresses["namesrv"]) as cluster:
            found = [message.body for message in cluster.admin.query_message("orders", "k")]
        process.terminate()
        process.wait(PATIENCE)
    assert sorted(found) == sorted(bodies) == sorted(stored(tmp_path))


def test_prometheus_gets_rocketmqs_names(tmp_path: Path) -> None:
    with serving(tmp_path, *ANYWHERE, "--metrics", FREE) as (_, addresses):
        send(addresses, b"one", b"two")
        with urllib.request.urlopen(addresses["metrics"], timeout=PATIENCE) as answer:
            text = answer.read().decode()
    assert 'rocketmq_messages_in_total{cluster="DefaultCluster",node_id="broker-a",topic="orders"} 2.0' in text
    assert "mqlab_failures_total 0.0" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--broker", "0.0.0.0:0"], "can be reached from other machines"),
        (["--tls-key", __file__], "--tls-key needs --tls-cert"),
        (["--tls-cert", __file__], "cannot be used for TLS"),
        (["--port-file", "missing/ports.json"], "there is no folder missing"),
        (["--only", "broker", "--namesrv", FREE], "is not an address to register at"),
        (["--set", "nonsense=1"], "there is no setting 'nonsense'"),
        (["--replica-of", "127.0.0.1:1", "--namesrv", "127.0.0.1:1"], "no master answers at 127.0.0.1:1"),
        (["--replica-of", "127.0.0.1:1", "--namesrv", "127.0.0.1:1"], "not its HA port"),
    ],
)
def test_what_it_refuses_has_a_reason_and_no_traceback(arguments: list[str], words: str, tmp_path: Path) -> None:
    asked = [*ANYWHERE, *arguments]  # of an option given twice the last one counts
    found = CliRunner().invoke(main, ["serve", "--store", str(tmp_path), *asked])
    assert found.exit_code in (1, 2)
    assert words in found.stderr


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("{}", "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        name_server = f"127.0.0.1:{taken.getsockname()[1]}"
        asked = ["--store", str(tmp_path / "b"), "--namesrv", name_server, "--broker", FREE, "--port-file", str(old)]
        found = CliRunner().invoke(main, ["serve", *asked])
    assert found.exit_code == 2
    assert not old.exists()
    assert f"cannot listen at {name_server}" in found.stderr


def test_an_error_after_the_start_ends_the_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        metrics = f"127.0.0.1:{taken.getsockname()[1]}"
        found = CliRunner().invoke(main, ["serve", "--store", str(tmp_path), *ANYWHERE, "--metrics", metrics])
    assert found.exit_code == 2
    assert f"cannot listen at {metrics}: Address already in use\n" in found.stderr
    assert list(tmp_path.rglob("checkpoint"))
    assert not list(tmp_path.rglob("abort"))


def test_encrypted_clients_are_served_and_others_are_not(tmp_path: Path) -> None:
    with serving(tmp_path, *ANYWHERE, "--tls-cert", str(CERTIFICATE)) as (_, addresses):
        trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
        with mqlab.connect(addresses["namesrv"], tls=trusting) as cluster:
            assert cluster.producer("shop").send(Message("orders", b"secret")).send_status == "SEND_OK"
        with pytest.raises(RemotingError):
            mqlab.connect(addresses["namesrv"])


def test_a_slave_copies_the_log_of_its_master(tmp_path: Path) -> None:
    bodies = [b"%d" % number for number in range(20)]
    copy = tmp_path / "copy"
    copy.mkdir()
    with serving(tmp_path, *ANYWHERE) as (_, addresses):
        master = addresses["brokers"][0]["address"]
        send(addresses, *bodies[:10])
        more = ("--replica-of", master, "--broker", FREE)  # it registers where its master does
        with serving(copy, *more) as (slave, _):
            send(addresses, *bodies[10:])
            end = time.monotonic() + PATIENCE
            while len(stored(copy)) < len(bodies) and time.monotonic() < end:
                time.sleep(0.1)
            slave.terminate()
            assert slave.wait(PATIENCE) == 0
    assert stored(copy) == stored(tmp_path) == bodies


def test_each_broker_in_a_process_of_its_own(tmp_path: Path) -> None:
    with serving(tmp_path, *ANYWHERE, "--brokers", "2", "--processes") as (process, addresses):
        pids = [broker["pid"] for broker in addresses["brokers"]]
        assert len({process.pid, *pids}) == 3
        with mqlab.connect(addresses["namesrv"]) as cluster:
            cluster.admin.create_topic("orders", read_queue_nums=1, write_queue_nums=1, confirm=True)
            producer = cluster.producer("shop")
            sent = {producer.send(Message("orders", b"x")).message_queue.broker_name for _ in range(8)}
            assert sent == {"broker-a", "broker-b"}
            os.kill(pids[0], signal.SIGKILL)
            late = {producer.send(Message("orders", b"x")).message_queue.broker_name for _ in range(4)}
            assert late == {"broker-b"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pids[1], 0)
    assert not list((tmp_path / "store" / "broker-b").glob("abort"))


def test_a_broker_process_that_does_not_start_ends_the_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = f"127.0.0.1:{taken.getsockname()[1]}"
        asked = ["serve", "--store", str(tmp_path), "--namesrv", FREE, "--broker", broker, "--processes"]
        found = subprocess.run(
            [sys.executable, "-m", "mqlab.cli", *asked],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    assert found.returncode in (1, 2)
    assert f"cannot listen at {broker}" in found.stderr
    assert "the process of broker-a ended before it was ready" in found.stderr
