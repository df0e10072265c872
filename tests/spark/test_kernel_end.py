"""A notebook's kernel with Spark that is told to end cleans up behind itself, and takes its JVM with it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
from jupyter_client.manager import start_new_kernel

from tests.labs.notebooks import SHORT_LIVED_JAVA

CELL = """
import tempfile
from mqlab.spark import session
folder = tempfile.TemporaryDirectory(prefix="mqlab-заказы-")
assert session().range(10).count() == 10
"""


def test_a_kernel_with_spark_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, **SHORT_LIVED_JAVA, "TMPDIR": str(tmp_path)}
    manager, client = start_new_kernel(kernel_name="python3", env=environment)
    manager.shutdown_wait_time = 20  # half of it until the kernel gets a signal: a busy machine is no failure
    try:
        reply = client.execute_interactive(CELL, timeout=200)
        assert reply["content"]["status"] == "ok", reply["content"]
        (kernel,) = [child for child in psutil.Process().children() if child.pid == manager.provisioner.pid]
        children = kernel.children(recursive=True)
        assert any("java" in child.name() for child in children)
        assert any(name.startswith("mqlab-заказы-") for name in os.listdir(tmp_path))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)
    assert [name for name in os.listdir(tmp_path) if name.startswith("mqlab-")] == []
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
