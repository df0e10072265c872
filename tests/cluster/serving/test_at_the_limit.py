"""A served broker at the limit of its descriptors: what it cannot keep is refused, and it says why."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import mqlab
from mqlab import Message
from mqlab.errors import MqlabError
from mqlab.rocketmq.wire.codes import RequestCode
from tests.cluster.serving.served import FREE, SMALL

DESCRIPTORS = 128
PATIENCE = 120.0


def test_at_the_limit_of_descriptors_sends_are_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    port_file, store = tmp_path / "ports.json", str(tmp_path / "store")
    settings = [part for setting in SMALL for part in ("--set", setting)]
    serve = [sys.executable, "-m", "mqlab.cli", "serve", "--store", store, "--port-file", str(port_file), *settings]
    serve += ["--namesrv", FREE, "--broker", FREE, "--metrics", FREE]
    limited = ["bash", "-c", f'ulimit -Sn {DESCRIPTORS} -Hn {DESCRIPTORS}; exec "$@"', "bash", *serve]
    sent: list[bytes] = []

    # 1. More queues than there are descriptors.
    with subprocess.Popen(limited, stderr=subprocess.PIPE, text=True) as process:
        try:
            ports = _ports(process, port_file)
            with mqlab.connect(ports["namesrv"]) as cluster:
                cluster.admin.create_topic("wide", read_queue_nums=192, write_queue_nums=192, confirm=True)
                producer = cluster.producer("shop")
                for number in range(192):
                    try:
                        if producer.send(Message("wide", b"%d" % number)).send_status == "SEND_OK":
                            sent.append(b"%d" % number)
                    except MqlabError as error:
                        assert "Too many open files" in str(error)
                        break
                assert 0 < len(sent) < 192
                answer = cluster.admin.ask(ports["brokers"][0]["address"], RequestCode.GET_BROKER_RUNTIME_INFO)
                assert "store.dispatch failed" in json.loads(answer.body or b"{}")["table"]["failedParts"]
            scrape = urllib.request.urlopen(ports["metrics"]).read().decode()
            assert next(line for line in scrape.splitlines() if line.startswith("mqlab_failed_parts")).endswith(" 1.0")
        finally:
            process.send_signal(signal.SIGTERM)
            log = process.communicate()[1]
    assert "part.failed part=store.dispatch" in log

    # 2. With enough of them everything that was answered SEND_OK can be read.
    with subprocess.Popen(serve, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            ports = _ports(process, port_file)
            with mqlab.connect(ports["namesrv"]) as cluster:
                address = ports["brokers"][0]["address"]
                found = 0
                for queue_id in range(192):
                    fields = {"topic": "wide", "queueId": queue_id}
                    found += int(cluster.admin.ask(address, RequestCode.GET_MAX_OFFSET, **fields).ext_fields["offset"])
                assert found == len(sent)
        finally:
            process.send_signal(signal.SIGTERM)


def _ports(process: subprocess.Popen[str], port_file: Path) -> dict:  # type: ignore[type-arg]
    end = time.monotonic() + PATIENCE
    while not port_file.exists():
        assert process.poll() is None
        assert time.monotonic() < end, "the server is not ready in time"
        time.sleep(0.02)
    found: dict = json.loads(port_file.read_text("utf-8"))  # type: ignore[type-arg]
    return found
