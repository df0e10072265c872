"""What is recorded: stories, the labs' own stories, real stores and a written day, each as a short digest.

``python -m tests.unchanged`` writes ``recorded.json`` anew. Do that only when behaviour was changed on purpose, and say
in the commit which recordings changed and why.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
from click.testing import CliRunner

from mqlab import Lab, play
from mqlab.cli import main
from mqlab.data.traffic import write
from tests.lab.runtime.test_determinism import day_without_listeners, small_day
from tests.lab.scenarios.crash_stories import SAFE, STORIES
from tests.lab.scenarios.test_retry_timeline import failing_message
from tests.lab.scenarios.world.replicas import TWO_COPIES
from tests.rocketmq.conformance.conftest import unpack
from tests.unchanged.traces import captured_labs, digest, is_repeatable, lines_of

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).with_name("recorded.json")
REAL_STORES = ("clean", "killed", "edges", "edges-killed")
REPORT = "the report of the small day"
PLAYED_REPORT = "the report of the played day"
LABS = (
    "00-a-messages-day",
    "01a-what-the-broker-writes",
    "01b-finding-a-message",
    "01c-what-survives",
    "07a-failure-takes-time",
    "07b-stop-in-time",
)
Digest = dict[str, Any]


def a_story(story: Callable[[Lab], Any], **settings: Any) -> Callable[[], Digest]:
    return lambda: digest(lines_of(play(story, **settings)))


def _broker_killed_in_the_middle(lab: Lab) -> None:
    lab.at("1s", lambda: lab.kill("broker-a"))
    lab.at("8s", lambda: lab.start("broker-a"))
    STORIES["send"](lab)


def _a_member_is_cut_off_and_comes_back(lab: Lab) -> None:
    lab.at("15s", lambda: lab.partition("billing-1", "broker-a"))
    lab.at("100s", lab.heal)
    STORIES["send-back"](lab)
    lab.run_for("120s")


def stories() -> dict[str, Callable[[], Digest]]:
    """Name -> what plays one story and digests its journal; together well under half a minute."""
    two = {"name_servers": 2, "replicas": 1, "broker": {**TWO_COPIES, "slave_read_enable": True}}
    return {
        "a small day": a_story(small_day, seed=5),
        "a small day on two brokers": a_story(small_day, seed=6, brokers=2),
        "retry until dead": a_story(failing_message, seed=7),
        "replicas, a lite pull consumer, a reset": a_story(day_without_listeners, seed=5, **two),
        "a broker killed while it is sent to": a_story(_broker_killed_in_the_middle, seed=1, **SAFE),
        "a member cut off": a_story(_a_member_is_cut_off_and_comes_back, seed=1, **SAFE),
        **{f"{name} story": a_story(story, seed=3, **SAFE) for name, story in STORIES.items()},
    }


def lab_stories(name: str) -> Digest:
    """Every simulated Lab that the code cells of a solution make, its checks and all."""
    notebook = nbformat.read(ROOT / "solutions" / f"{name}.ipynb", as_version=4)
    names: dict[str, Any] = {"display": lambda *shown: None}
    with captured_labs() as labs:
        for cell in notebook.cells:
            if cell.cell_type == "code" and "raises-exception" not in cell.metadata.get("tags", ()):
                exec(compile(cell.source, f"{name} {cell.id}", "exec"), names)
        return digest(line for lab in labs if is_repeatable(lab) for line in lines_of(lab))


LEFT_OUT = {"problems", "stopReason", "name"}  # texts for people; an index file made by the test is named by the clock


def numbers_of(value: Any) -> Any:
    """A JSON value without the texts that people read and without times of this run."""
    if isinstance(value, dict):
        return {name: numbers_of(item) for name, item in value.items() if name not in LEFT_OUT}
    if isinstance(value, list):
        return [numbers_of(item) for item in value]
    return value


def real_store(name: str) -> Digest:
    """What the command line says about a store of the real broker: its messages, its summary, its recovery."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        unpack("stores.tar.xz", Path(folder))
        store = str(Path(folder) / "stores" / name)
        for verb in ("cat", "inspect", "recover"):
            answer = CliRunner().invoke(main, [verb, store, "--json"])
            lines.append(f"{verb} exit {answer.exit_code}")
            rows = [json.loads(line) for line in answer.stdout.splitlines()]
            lines += [json.dumps(numbers_of(row), sort_keys=True).replace(store, "STORE") for row in rows]
    return digest(lines)


def written_day() -> Digest:
    """Every file of a day of traffic, by its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        day = Path(folder) / "day"
        small = {"commit_log_bytes": 262_144, "consume_queue_bytes": 6_000, "hash_slot_num": 2_000, "index_num": 20_000}
        write(day, messages=4_000, brokers=2, seed=11, index=True, **small)
        files = sorted(path for path in day.rglob("*") if path.is_file())
        return digest(f"{path.relative_to(day)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files)


def everything() -> Iterator[tuple[str, Callable[[], Digest]]]:
    """Name and function of each recording, those of `make long` (the labs) last."""
    yield from stories().items()
    for name in REAL_STORES:
        yield f"store {name}", lambda name=name: real_store(name)  # type: ignore[misc]
    yield "a written day", written_day
    for name in LABS:
        yield f"lab {name}", lambda name=name: lab_stories(name)  # type: ignore[misc]


def recorded() -> dict[str, Digest]:
    """The committed digests, by name."""
    rows = json.loads(RECORDED.read_text("utf-8"))
    return {name: {"lines": lines, "chunks": chunks.split()} for name, (lines, chunks) in rows.items()}


def record(digests: dict[str, Digest]) -> None:
    """Write the committed digests: one row per recording, its number of lines and the hashes of its chunks."""
    rows = {name: [digest["lines"], " ".join(digest["chunks"])] for name, digest in digests.items()}
    RECORDED.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
