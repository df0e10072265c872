"""`import mqlab` and every core package need the standard library alone: Spark workers and graders start fast."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from mqlab.course import widgets
from tests.tidy.sources import PACKAGE, ROOT, modules
from tests.tidy.test_bans import CORE

# In a fresh interpreter without site-packages: nothing but the standard library can be imported at all.
PROGRAM = """
import json, sys
sys.path.insert(0, {root!r})
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""
SLOW = {"asyncio", "multiprocessing", "unittest", "tkinter", "xml", "http", "ssl", "ctypes.wintypes"}


EMPTY_PROGRAM = """
import importlib.util, json, os, shutil, sys
sys.path.insert(0, sys.argv[1])
import mqlab.rocketmq
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire.message import Message
directory, killed = sys.argv[2], sys.argv[2] + "-killed"
with MessageStore.open(directory, mapped_file_size_commit_log=4 << 20) as store:
    for number in range(6000):
        store.put(Message("orders", b"%d" % number, keys=f"order-{number}"))
    shutil.copytree(directory, killed)
shutil.rmtree(killed + "/consumequeue")
with MessageStore.open(killed, mapped_file_size_commit_log=4 << 20) as store:
    scanned = store.recovery_report.units_scanned
reader = StoreReader(killed)
(queue,) = reader.queues("orders")
same = reader.max_physical_offset == StoreReader(directory).max_physical_offset
numpy = importlib.util.find_spec("numpy") is not None
print(json.dumps({"units": scanned, "queue": queue.max_offset, "same_log": same, "numpy": numpy}))
"""


def loads(module: str, root: Path = ROOT) -> list[str]:
    program = PROGRAM.format(root=str(root), module=module)
    answer = subprocess.run([sys.executable, "-S", "-I", "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    found: list[str] = json.loads(answer.stdout)
    return found


def test_mqlab_itself_needs_the_standard_library_alone() -> None:
    loaded = loads("mqlab")
    assert not [name for name in loaded if name.split(".")[0] in SLOW]


def test_every_module_of_rocketmq_needs_the_standard_library_alone() -> None:
    names = [module.name for module in modules() if module.room in CORE or module.wing == "rocketmq"]
    assert len(names) > 200
    loads(", ".join(names))


def test_a_store_is_written_killed_and_recovered_where_only_python_is_installed(tmp_path: Path) -> None:
    """In an environment of its own, with the wing and the ground files alone, and more units than numpy is used for."""
    wheel = tmp_path / "site" / "mqlab"
    shutil.copytree(PACKAGE / "rocketmq", wheel / "rocketmq", ignore=shutil.ignore_patterns("__pycache__"))
    for file in PACKAGE.glob("*.py"):
        shutil.copy(file, wheel)
    venv.create(tmp_path / "empty", with_pip=False)
    program = tmp_path / "program.py"
    program.write_text(EMPTY_PROGRAM, "utf-8")
    python = tmp_path / "empty" / "bin" / "python"
    command = [python, "-I", program, tmp_path / "site", tmp_path / "store"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {"units": 6000, "queue": 6000, "same_log": True, "numpy": False}


def test_a_lab_loads_no_clients_pictures_threads_or_readers_before_they_are_asked_for() -> None:
    program = "import json, sys; from mqlab import Lab; Lab(); print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = json.loads(answer.stdout)
    late = (
        "mqlab.rocketmq.client",
        "mqlab.lab.views",
        "mqlab.rocketmq.admin",
        "mqlab.lab.inspector.inspector",
        "mqlab.lab.runtime.threads",
    )
    late += ("mqlab.rocketmq.filter.sql", "mqlab.rocketmq.store.recovery.fast_scan", "traceback")
    late += ("mqlab.lab.runtime.sockets", "sqlite3", "numpy", "difflib", "selectors", "concurrent", *sorted(SLOW))
    assert not [name for name in loaded if any(f"{name}.".startswith(f"{each}.") for each in late)]


@pytest.mark.parametrize(
    "module",
    [
        "mqlab.course.grading.running.execute",
        "mqlab.course.grading.running.kernel",
        "mqlab.course.grading.sandbox.worker",
    ],
)
def test_what_judges_a_submission_loads_no_broker_and_no_widget_before_a_case_asks_for_one(module: str) -> None:
    """Three processes judge every submission of a class: what each of them imports is paid two hundred times."""
    program = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = json.loads(answer.stdout)
    late = (
        "mqlab.rocketmq.broker",
        "mqlab.lab.world",
        "mqlab.rocketmq.store",
        "mqlab.rocketmq.admin",
        "mqlab.rocketmq.client",
        "mqlab.course.widgets",
    )
    late += ("anywidget", "numpy", "pyarrow", "pyspark")
    assert not [name for name in loaded if any(f"{name}.".startswith(f"{each}.") for each in late)]


def test_an_explorer_is_loaded_without_the_others() -> None:
    program = (
        "import json, sys; from mqlab.course.widgets import percentile_board; print(json.dumps(sorted(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = json.loads(answer.stdout)
    late = (
        "mqlab.lab.world",
        "mqlab.rocketmq.broker",
        "mqlab.rocketmq.client",
        "mqlab.rocketmq.store",
        "mqlab.course.widgets.boards.console.board",
    )
    assert not [name for name in loaded if any(f"{name}.".startswith(f"{each}.") for each in late)]


def test_each_explorer_is_what_its_name_says_even_after_a_module_beside_it_was_imported() -> None:
    for module in (PACKAGE / "course" / "widgets").iterdir():
        if module.stem != "__pycache__" and not module.stem.startswith("__"):
            importlib.import_module(f"mqlab.course.widgets.{module.stem}")
    found = {name: getattr(widgets, name) for name in widgets.__all__}
    assert {name: value.__name__ for name, value in found.items()} == {name: name for name in widgets.__all__}


def test_the_check_sees_a_package_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "needy.py").write_text("import numpy\n", "utf-8")
    with pytest.raises(AssertionError, match="numpy"):
        loads("needy", tmp_path)
