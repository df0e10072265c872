"""The sources on real clusters: executors in processes of their own, a standalone master and workers, Spark Connect.

Each job is a program of its own, as a process can have one kind of session only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.data.arrow.queues import read_queue_units
from mqlab.data.arrow.store_tables import read_store_table
from mqlab.data.spark.session import SparkFailed, settings_for
from mqlab.data.spark.shipping import packed
from mqlab.data.spark.standalone import ConnectServer, StandaloneCluster
from mqlab.errors import UsageError
from tests.course.labs.notebooks import SHORT_LIVED_JAVA
from tests.tidy.sources import ROOT

pytestmark = pytest.mark.spark

STORES = ["clean", "killed"]


def processes_of(folder: Path) -> list[str]:
    """Command lines of processes that work in this folder or know of it; not the driver's JVM, which ends by itself."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            place = os.readlink(process / "cwd")
            if (str(folder) in words or str(folder) in place) and "pyspark-shell" not in words:
                found.append(words)
        except OSError:
            continue
    return found


def check(
    kind: str, how_much: str, real_store: Callable[[str], Path], expected: Callable[[str], Any], work: Path
) -> None:
    stores = {real_store(name).parent for name in STORES}.pop()
    (work / "tmp").mkdir()
    answer = subprocess.run(
        [sys.executable, "-m", "tests.data.spark.cluster_job", kind, how_much, str(stores), str(work)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **SHORT_LIVED_JAVA, "TMPDIR": str(work / "tmp")},
    )
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    wanted = Counter((name, m["topic"], m["queueId"]) for name in STORES for m in expected(name)["messages"])
    assert {tuple(key): count for *key, count in found["counts"]} == wanted
    if how_much == "all":
        assert found["streamed"] == found["rows"] == sum(wanted.values())
        units = read_queue_units(stores, topics=()).column("broker_name").to_pylist()
        assert found["units"] == Counter(units)
        assert found["offsets"] == read_store_table(stores, "offsets").num_rows
    assert found["remote"] is kind.startswith("connect")
    shipped = [path for path in found["mqlab"] if ".zip" in path]
    assert shipped == found["mqlab"] != []  # not the installed one: executors elsewhere would have none
    assert processes_of(work) == []
    assert [path.name for path in (work / "tmp").iterdir() if path.name.startswith("mqlab-cluster")] == []


def test_a_standalone_master_and_worker(
    real_store: Callable[[str], Path], expected: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check("standalone", "batch", real_store, expected, tmp_path_factory.mktemp("standalone"))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["standalone", "connect", "local-cluster", "connect-standalone"])
def test_all_sources_and_a_stream_on_every_cluster(
    kind: str,
    real_store: Callable[[str], Path],
    expected: Callable[[str], Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    check(kind, "all", real_store, expected, tmp_path_factory.mktemp(kind))


def test_what_is_sent_to_executors_is_the_package(tmp_path: Path) -> None:
    package = packed(tmp_path)
    assert packed(tmp_path) == package
    assert [path.name for path in tmp_path.iterdir()] == [package.name]
    names = set(zipfile.ZipFile(package).namelist())
    assert {"mqlab/__init__.py", "mqlab/data/arrow/columns.py", "mqlab/data/spark/source.py"} <= names
    assert all(name.startswith("mqlab/") and name.endswith(".py") for name in names)
    program = "import sys; sys.path.insert(0, sys.argv[1]); import mqlab.data.spark.source as s; print(s.__file__)"
    answer = subprocess.run([sys.executable, "-c", program, package], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith(str(package))


def test_a_cluster_on_this_machine_is_reached_under_its_own_address() -> None:
    for master in ("local[2]", "local-cluster[2,1,1024]", "spark://127.0.0.1:7077", "spark://localhost:7077"):
        assert settings_for(master, "a", False, {})["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in settings_for("spark://10.0.0.7:7077", "a", False, {})


def test_a_cluster_without_workers_is_refused() -> None:
    with pytest.raises(UsageError, match="0 workers"):
        StandaloneCluster(0)


def test_a_server_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SparkFailed, match=r"connect-server did not start[\s\S]*Master must") as caught:
        ConnectServer("nonsense://x")
    log = Path(caught.value.hint.rpartition(" ")[2])
    assert "Master must" in log.read_text("utf-8")
    assert list(tmp_path.iterdir()) == []
