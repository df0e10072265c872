"""Lab 01: the reference passes on files it has not seen, and what its cases call right is what the store does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mqlab.course import CheckFailed, answer, check
from mqlab.course.cases.lab01 import files as made
from mqlab.course.teach.datasets import real_store
from mqlab.course.teach.exercises import Exercise, Finding, manifest
from mqlab.course.widgets import log_xray
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire import properties, record
from tests.course.labs.notebooks import ROOT, read

PARTS = ("01a-what-the-broker-writes", "01b-finding-a-message", "01c-what-survives")
SOLUTIONS = [ROOT / "solutions" / f"{name}.ipynb" for name in PARTS]
EXERCISES = manifest("lab01").exercises
OTHER_SEEDS = range(100, 110)


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    """The names that the solution's answer cells define, with the lab's imports and set-up."""
    names: dict[str, Any] = {}
    for cell in (cell for path in SOLUTIONS for cell in read(path).cells):
        imports = [line for line in cell.source.splitlines() if line.startswith(("import ", "from "))]
        if cell.cell_type == "code":
            exec("\n".join(imports), names)
            if "# exercise: " in cell.source or "setup" in cell.metadata.get("tags", ()):
                exec(cell.source, names)
    return names


@pytest.fixture(scope="module")
def hidden() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hidden_lab01", ROOT / "solutions" / "grading" / "lab01.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_the_reference_passes_on_files_it_has_not_seen(
    exercise: Exercise, reference: dict[str, Any], hidden: ModuleType
) -> None:
    assert check(exercise.id, reference).state == "good"
    for case in [*map(exercise.case, OTHER_SEEDS), *hidden.HIDDEN.get(exercise.id, ())]:
        assert case.run(reference) is None, case.name


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_an_answer_of_the_wrong_kind_is_told_what_to_return(exercise: Exercise) -> None:
    found = exercise.case(1).run({exercise.defines[0]: lambda *_: 3.5})
    assert isinstance(found, Finding)
    assert found.rule.startswith(f"{exercise.defines[0]} returns")


@pytest.mark.parametrize("damage", made.DAMAGES)
@pytest.mark.parametrize("seed", range(5))
def test_a_torn_log_ends_where_the_store_ends_it(seed: int, damage: str, tmp_path: Path) -> None:
    files = made.torn_log(seed, damage)
    (tmp_path / "commitlog").mkdir()
    for name, data in files.items():
        (tmp_path / "commitlog" / name).write_bytes(data)
    (tmp_path / "abort").write_text("1", "ascii")
    with MessageStore.open(
        str(tmp_path), mapped_file_size_commit_log=made.TORN_FILE, sharp_edges=("torn_properties_accepted",)
    ) as store:
        assert store.recovery_report.end_offset == made.end_of(files)[0]


def test_every_kind_of_damage_is_tried_in_public_or_in_hiding(hidden: ModuleType) -> None:
    torn = next(exercise for exercise in EXERCISES if exercise.id == "lab01.torn")
    assert {made.DAMAGES[seed % len(made.DAMAGES)] for seed in torn.public_seeds} >= {
        "nothing",
        "zeros",
        "hole",
        "body",
    }
    from_seed = hidden.FROM_SEED["lab01.torn"](7)
    assert {case.name for case in from_seed} >= {f"a log: {damage}" for damage in made.DAMAGES}


def test_units_have_all_shapes() -> None:
    decoded = [record.decode(unit) for seed in range(3) for unit in made.units(seed)]
    assert {(":" in one.born_host[0], ":" in one.store_host[0]) for one in decoded} == {
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    }
    assert {one.magic for one in decoded} == {record.MAGIC_V1, record.MAGIC_V2}


def test_the_first_wrong_thing_is_shown_with_its_bytes(reference: dict[str, Any]) -> None:
    def off_by_one(log: bytes, start: int) -> Any:
        return reference["read_unit"](log, start) | {"queue_offset": 1}

    with pytest.raises(CheckFailed) as failed:
        check("lab01.unit", {"read_unit": off_by_one})
    unit = made.units(1)[0]
    assert "is the message's number in its queue" in str(failed.value)
    assert f"queue_offset, from byte 20: {unit[20:28].hex(' ')}" in str(failed.value)


def test_a_list_is_taken_for_a_tuple(reference: dict[str, Any]) -> None:
    for name, function in (("lab01.lookup", "read_next"), ("lab01.rebuild", "rebuild")):
        said = check(name, {function: lambda *given, right=reference[function]: list(right(*given))})
        assert said.state == "good"


def test_a_time_is_shown_with_its_date(reference: dict[str, Any]) -> None:
    def later(log: bytes, start: int) -> Any:
        found = reference["read_unit"](log, start)
        return found | {"store_timestamp": found["store_timestamp"] + 1}

    with pytest.raises(CheckFailed) as failed:
        check("lab01.unit", {"read_unit": later})
    assert re.search(r"\d{13} \(20\d\d-", str(failed.value))


def test_entries_read_from_the_wrong_end_are_told_so(reference: dict[str, Any]) -> None:
    def turned(committed: int, queue_files: Any, log_files: Any) -> Any:
        right = reference["read_next"](committed, queue_files, log_files)
        return right if right[0] is None else (b"", right[1])

    with pytest.raises(CheckFailed, match="Numbers in the files are big-endian"):
        check("lab01.lookup", {"read_next": turned})


def test_the_reference_reads_every_unit_of_the_real_broker(reference: dict[str, Any]) -> None:
    inspector = StoreInspector(real_store("clean"))
    log = Path(inspector.directory, "commitlog", "0" * 20).read_bytes()
    at, count = 0, 0
    while at < inspector.max_physical_offset:
        found, right = reference["read_unit"](log, at), record.decode(log, at)
        assert (found["physical_offset"], found["queue_offset"]) == (at, right.queue_offset)
        assert (found["topic"], found["body"]) == (right.topic, right.body)
        assert found["properties"] == properties.decode(right.properties)
        at, count = at + found["size"], count + 1
    assert count == 204 and reference["valid_end"]({"0" * 20: log}) == at


def test_the_reference_rebuilds_the_queues_of_the_real_broker(reference: dict[str, Any]) -> None:
    inspector = StoreInspector(real_store("clean"))
    pieces = [piece.raw() for piece in inspector.pieces()]
    for topic in ("orders", "tags", "flow"):
        for queue_id in inspector.topics()[topic]:
            folder = Path(inspector.directory, "consumequeue", topic, str(queue_id))
            _, entries = reference["rebuild"]([bytes(piece) for piece in pieces], topic, queue_id)
            assert entries == next(folder.iterdir()).read_bytes()[: len(entries)]
            assert len(entries) == 20 * inspector.queue(topic, queue_id).max_offset


def test_an_age_that_is_not_the_smallest_is_told_why() -> None:
    refutations = {73: "an hour earlier", 76: "04:00 of the fourth day", 4: "how old a file must be", 71: "one less"}
    for hours, said in refutations.items():
        assert said in str(answer("lab01.age", hours, None)), hours
    assert "72 is right" in str(answer("lab01.age", 72, None))


def test_the_xray_tells_who_dispatched_too_much_and_who_reads_the_log_as_the_queue() -> None:
    one_of_three = log_xray(["append", "dispatch", "append", "append"])
    assert "how many entries does it have" in str(answer("lab01.unseen", 3, one_of_three))
    assert "1 is right" in str(answer("lab01.unseen", 1, one_of_three))
    too_much = log_xray(["append", "append", "append", ("dispatch", {"units": None})])
    assert "3 units, 3 of them dispatched" in str(answer("lab01.unseen", 1, too_much))
