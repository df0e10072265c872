"""The run as a whole: resumed, begun anew, refused; of empty stores, of a real broker's, of a stream's."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from pyspark.sql import types as T
from pyspark.testing import assertDataFrameEqual

from mqlab.cli import main
from mqlab.data.arrow.losses import DataLossWarning
from mqlab.data.arrow.reading import read_table
from mqlab.data.spark import pipeline
from mqlab.data.spark.pipeline import job, schemas
from mqlab.data.spark.pipeline.compacting import files_of
from mqlab.data.spark.report import write_report
from mqlab.data.spark.thresholds import Thresholds
from mqlab.errors import CorruptionError, StoreError, UsageError
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.message import Message
from tests.data.spark.pipeline.day import Day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def copy(day: Day, tmp_path: Path) -> Path:
    """An own copy of the day's output, to break."""
    return Path(shutil.copytree(day.out, tmp_path / "out"))


def written(day: Day, out: Path, **how: Any) -> list[str]:
    """Run again, and say which steps that made."""
    told: list[str] = []
    pipeline.run(
        day.world.directory, out, spark=day.spark, tell=lambda step, n: told.append(step) if n else None, **how
    )
    return told


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without its last steps, which take longest."""
    steps = {name: step for name, step in job.STEPS.items() if name not in ("islands", "suspicions")}
    monkeypatch.setattr(job, "STEPS", steps)


def test_a_finished_run_is_not_done_again(day: Day, copy: Path) -> None:
    assert written(day, copy) == []


@pytest.mark.usefixtures("quick")
def test_it_goes_on_where_it_stopped(day: Day, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of a step, and a machine that went down while it wrote: nothing half is taken for whole."""
    before = day.rows("calls")
    shutil.rmtree(copy / "facts" / "calls")
    (copy / ".unfinished" / "calls").mkdir(parents=True)
    (copy / ".unfinished" / "calls" / "part-00000.snappy.parquet").write_bytes(b"PAR1")

    def interrupted(work: job.Work) -> Any:
        raise KeyboardInterrupt

    slowest = job.STEPS["slowest"]
    with monkeypatch.context() as patch:
        patch.setitem(job.STEPS, "slowest", job.TableStep("slowest", slowest.schema, interrupted, slowest.folder))
        with pytest.raises(KeyboardInterrupt):
            written(day, copy)
    assert not (copy / "facts" / "slowest").exists()
    assert not (copy / "facts" / "producers").exists()
    assert not list(copy.glob(".unfinished/*"))
    assert written(day, copy) == ["slowest", "producers"]
    made = day.spark.read.parquet(str(copy / "facts" / "calls"))
    assert Counter(map(str, made.toArrow().to_pylist())) == Counter(map(str, before))
    assert json.loads((copy / "pipeline.json").read_text("utf-8"))["steps"].keys() == job.STEPS.keys()


@pytest.mark.usefixtures("quick")
def test_from_a_step_on(day: Day, copy: Path) -> None:
    assert written(day, copy, start="slowest") == ["slowest", "producers"]
    with pytest.raises(UsageError, match=r"unknown step 'lives'[\s\S]*steps are messages, trace"):
        written(day, copy, start="lives")


@pytest.mark.usefixtures("quick")
def test_settings_of_the_steps_end_with_the_run(day: Day, copy: Path) -> None:
    """Among them that batches of Arrow are not measured at each row."""
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = day.spark.conf.get(name)
    seen: list[str | None] = []

    def look(step: str, numbers: dict[str, float]) -> None:
        seen.append(day.spark.conf.get(name))

    pipeline.run(day.world.directory, copy, spark=day.spark, start="producers", tell=look)
    assert seen == ["2147483647"] * 2
    assert day.spark.conf.get(name) == before


def test_the_rules_take_thresholds_and_can_be_left_out(day: Day, copy: Path, tmp_path: Path) -> None:
    """Other thresholds make the rules' tables again, and hold until others are given; a page may be without rules."""

    def kinds() -> set[str]:
        return {row[0] for row in day.spark.read.parquet(str(copy / "facts" / "suspicions")).select("kind").collect()}

    before = kinds()
    limits = Thresholds.of({"fewest": 10_000})
    assert written(day, copy, thresholds=limits) == ["islands", "suspicions"]
    assert kinds() == before - {"offset set back"} < before
    assert written(day, copy) == written(day, copy, thresholds=limits) == []
    page = write_report(copy, tmp_path / "day.html").read_text("utf-8")
    assert "10000" in page and 'id="wrong"' in page
    assert written(day, copy, without=["suspicions"]) == []
    assert not (copy / "facts" / "islands").exists() and not (copy / "facts" / "suspicions").exists()
    page = write_report(copy, tmp_path / "day.html").read_text("utf-8")
    assert 'id="wrong"' not in page and "findings" not in page and 'id="lost"' in page
    with pytest.raises(UsageError, match="cannot do without 'life'"):
        written(day, copy, without=["life"])


def test_what_is_not_ours_is_left_alone(day: Day, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "глава-1.txt").write_text("важно", "utf-8")
    with pytest.raises(UsageError, match=r"not made by 'mqlab spark run'[\s\S]*new or empty"):
        written(day, tmp_path / "thesis")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="not made by"):
        written(day, tmp_path / "file")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["глава-1.txt"]
    with pytest.raises(UsageError, match="no store directory"):
        pipeline.run(tmp_path / "nowhere", tmp_path / "out", spark=day.spark)


def test_outputs_of_other_stores_versions_and_damaged_ones_are_refused(day: Day, copy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(day.world.directory, other)
    with pytest.raises(UsageError, match=r"holds the tables of other stores[\s\S]*another --out"):
        pipeline.run(other, copy, spark=day.spark)
    manifest = copy / "pipeline.json"
    told = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps({**told, "format": 99}))
    with pytest.raises(UsageError, match="another version"):
        written(day, copy)
    manifest.write_text("{")
    with pytest.raises(UsageError, match="cannot read"):
        written(day, copy)


def test_two_runs_do_not_write_at_once(day: Day, copy: Path) -> None:
    with job.held(copy), pytest.raises(StoreError, match="another run is working"):
        written(day, copy)


def test_a_store_of_a_real_broker(
    spark: SparkSession, real_store: Callable[[str], Path], expected: Callable[[str], dict[str, Any]]
) -> None:
    """Kinds, topics and groups of all its messages; the names are what the real broker's own listing says."""
    extents = pipeline.snapshot(real_store("clean"))
    rows = pipeline.messages(pipeline.raw(spark, extents)).toArrow().to_pylist()
    truth = Counter[tuple[str, str | None]]()
    for message in expected("clean")["messages"]:
        topic, said = message["topic"], message["properties"]
        parked = topic == names.SCHEDULE_TOPIC
        stands_for = said["REAL_TOPIC"] if parked else topic
        kind = {"%RETRY%": "retry", "%DLQ%": "dead"}.get(stands_for[: stands_for.rfind("%") + 1], "normal")
        kind = {
            names.TRACE_TOPIC: "trace",
            names.HALF_TOPIC: "half",
            names.OP_HALF_TOPIC: "op",
        }.get(topic, kind)
        if kind == "normal" and names.is_system_topic(stands_for):
            kind = "system"
        user = {
            "retry": said.get("RETRY_TOPIC"),
            "dead": said.get("RETRY_TOPIC"),
            "half": said.get("REAL_TOPIC"),
            "normal": stands_for,
        }.get(kind)
        truth[kind, user] += 1
    assert Counter((row["kind"], row["user_topic"]) for row in rows) == truth
    assert {"normal", "retry", "dead", "trace", "half"} <= {kind for kind, _ in truth}


def test_lives_in_a_store_of_a_real_broker(spark: SparkSession, real_store: Callable[[str], Path]) -> None:
    """Written by Java clients with their trace: every call of a listener belongs to a message of its group."""
    extents = pipeline.snapshot(real_store("clean"))
    messages = pipeline.messages(pipeline.raw(spark, extents)).cache()
    deliveries = pipeline.deliveries(pipeline.trace(pipeline.trace_raw(spark, extents)).cache()).cache()
    offsets = pipeline.offsets(spark, [extent.store for extent in extents])
    readers = pipeline.readers(messages, deliveries, offsets)
    life = pipeline.life(messages, deliveries, readers, offsets).cache()
    assert life.selectExpr("sum(attempts)").first()[0] == deliveries.count() > 0  # type: ignore[index]
    dead = messages.where("kind = 'dead'").select("msg_id", "consumer_group").distinct().count()
    assert life.where("outcome = 'dead'").count() <= dead
    again = "again_resend + again_retry + again_no_result + again_soon + again_late"
    assert life.where(f"attempts > members AND attempts - members != {again}").count() == 0
    for frame in (messages, deliveries, life):
        frame.unpersist()


def test_an_empty_store_and_one_without_a_trace(spark: SparkSession, tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "empty"), mapped_file_size_commit_log=16_384):
        pass
    with MessageStore.open(str(tmp_path / "silent"), mapped_file_size_commit_log=16_384) as store:
        for number in range(9):
            store.put(Message("订单", f"{number} 🚚".encode(), keys=f"k-{number}", tags="paid"))
    extents = pipeline.snapshot([tmp_path / "empty", tmp_path / "silent"])
    messages = pipeline.messages(pipeline.raw(spark, extents)).cache()
    assert {(r["broker_name"], r["user_topic"], r["kind"]) for r in messages.collect()} == {
        ("silent", "订单", "normal")
    }
    deliveries = pipeline.deliveries(pipeline.trace(pipeline.trace_raw(spark, extents)).cache()).cache()
    offsets = pipeline.offsets(spark, [extent.store for extent in extents])
    readers = pipeline.readers(messages, deliveries, offsets)
    life = pipeline.life(messages, deliveries, readers, offsets)
    assert [(r["consumer_group"], r["outcome"], r["attempts"]) for r in life.collect()] == [(None, "pending", 0)] * 9
    known = spark.createDataFrame([("silent", "订单", "billing", 0, 6)], pipeline.STEPS["offsets"].schema)
    silent = pipeline.life(messages, deliveries, pipeline.readers(messages, deliveries, known), known)
    assert Counter(r["outcome"] for r in silent.collect()) == {"untraced": 6, "pending": 3}
    messages.unpersist()
    deliveries.unpersist()


def cut_in_half(store: Path) -> int:
    """Lose the second half of a store's log, as a copy does that was made file by file.

    Returns how many messages were in it.
    """
    places = read_table(store, ["physical_offset"]).column(0).to_pylist()
    half = places[len(places) // 2]
    for path in (store / "commitlog").iterdir():
        content = path.read_bytes()
        keep = min(max(half - int(path.name), 0), len(content))
        path.write_bytes(content[:keep] + bytes(len(content) - keep))
    return len([place for place in places if place >= half])


def test_a_log_that_ends_before_its_queues_do(day: Day, copy: Path, tmp_path: Path) -> None:
    """Refused; or allowed, and then the report says how many messages are in none of its tables."""
    stores = Path(shutil.copytree(day.world.directory, tmp_path / "stores"))
    lost = cut_in_half(stores / "broker-a")
    with pytest.raises(CorruptionError, match=f"broker-a/commitlog at offset .* {lost} are missing"):
        pipeline.run(stores, tmp_path / "new", spark=day.spark)
    with pytest.raises(CorruptionError, match=f"{lost} are missing"):
        pipeline.Follow(stores, tmp_path / "new", spark=day.spark)
    refused = CliRunner().invoke(main, ["spark", "run", str(stores), "--out", str(tmp_path / "new")])
    assert refused.exit_code != 0 and f"{lost} are missing" in refused.stderr
    with pytest.warns(DataLossWarning, match=f"{lost} are missing"):
        extents = pipeline.snapshot(stores, fail_on_data_loss=False)
    units = pipeline.raw(day.spark, extents).groupBy("broker_name").count().collect()
    assert {row[0]: row[1] for row in units} == Counter(
        read_table(stores, ["broker_name"], fail_on_data_loss=False).column(0).to_pylist()
    )
    manifest = json.loads((copy / "pipeline.json").read_text("utf-8"))
    (copy / "pipeline.json").write_text(json.dumps({**manifest, "stores": [asdict(extent) for extent in extents]}))
    told: list[str] = []
    pipeline.run(
        stores,
        copy,
        spark=day.spark,
        start="suspicions",
        fail_on_data_loss=False,
        tell=lambda step, numbers: told.append(step),
    )
    assert set(told) == {"suspicions"}
    rows = day.spark.read.parquet(str(copy / "facts" / "suspicions")).where("kind = 'missing messages'").collect()
    assert [(row["broker_name"], row["messages"]) for row in rows] == [("broker-a", lost)]
    page = write_report(copy, tmp_path / "day.html").read_text("utf-8")
    assert "missing messages" in page and "in no table and in no lag" in page


def test_broadcasting_groups_are_found_by_what_they_were_given(day: Day) -> None:
    """Brokers keep no offsets of theirs."""
    offsets = day.table("offsets").where("consumer_group != 'billing'")
    readers = pipeline.readers(day.table("messages"), day.table("deliveries"), offsets).toArrow().to_pylist()
    assert sorted((r["topic"], r["consumer_group"], r["known_by"], r["traced"]) for r in readers) == [
        ("orders", "audit", "offsets", True),
        ("orders", "billing", "trace", True),
        ("orders", "quiet", "offsets", False),
    ]


def test_schemas_are_checked(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1)], "topic string, consumer_group int")
    with pytest.raises(UsageError, match=r"readers needs known_by, traced[\s\S]*topic, consumer_group"):
        schemas.checked(frame, schemas.READERS, "readers")
    wanted = T.StructType([T.StructField("consumer_group", T.StringType())])
    with pytest.raises(UsageError, match="readers: column consumer_group is int, expected string"):
        schemas.checked(frame, wanted, "readers")
    with pytest.raises(UsageError, match="messages needs broker_name"):
        pipeline.messages(frame)
    assert schemas.LIFE["latency_ms"].metadata["comment"]


def test_a_stream_writes_the_same_tables_and_goes_on_where_it_was(day: Day, tmp_path: Path) -> None:
    """Followed in three goes, while the log grew in between, and compacted: the tables of one run."""
    stores, out = tmp_path / "stores", tmp_path / "out"
    shutil.copytree(day.world.directory, stores)
    rows: list[tuple[str, int]] = []

    def follow() -> None:
        pipeline.Follow(stores, out, spark=day.spark, available_now=True).wait(lambda name, n: rows.append((name, n)))

    def put(first: int, count: int) -> None:
        with MessageStore.open(str(stores / "broker-a")) as store:
            for number in range(first, first + count):
                store.put(Message("orders", "ещё один".encode(), keys=f"more-{number}"))

    follow()
    put(0, 4)
    with pytest.raises(UsageError, match="are written by a stream"):
        pipeline.run(stores, out, spark=day.spark, start="messages")
    follow()
    # 1. Compacted, and what a killed batch has left is gone.
    orphan = out / "messages" / "part-of-a-killed-batch.parquet"
    shutil.copyfile(next((out / "messages").glob("*.parquet")), orphan)
    before = len(files_of(out / "messages"))
    assert before > 1 and pipeline.compact(out, spark=day.spark)["messages"] == (before, 1)
    assert not orphan.exists()
    # 2. A compaction that dies between its two renames is undone by the next job there, here the stream.
    (out / ".before").mkdir()
    (out / "messages").rename(out / ".before" / "messages")
    put(4, 5)
    follow()
    assert len(files_of(out / "messages")) == len(list((out / "messages").glob("*.parquet"))) > 1
    messages = day.spark.read.schema(schemas.MESSAGES).parquet(str(out / "messages"))
    assertDataFrameEqual(messages.where("keys NOT LIKE 'more-%'"), day.table("messages"))
    assert messages.where("keys LIKE 'more-%'").count() == 9
    trace = day.spark.read.schema(schemas.TRACE).parquet(str(out / "trace"))
    assertDataFrameEqual(trace, day.table("trace"))
    assert rows[-1] == ("messages", 5)
    with pytest.raises(UsageError, match="has no tables of a stream"):
        pipeline.compact(day.out, spark=day.spark)
    with pytest.raises(UsageError, match="made by a run"):
        pipeline.Follow(day.world.directory, day.out, spark=day.spark)


def test_the_command_line(day: Day, copy: Path, tmp_path: Path) -> None:
    shutil.rmtree(copy / "facts" / "suspicions")
    runner = CliRunner()
    ran = runner.invoke(main, ["spark", "run", str(day.world.directory), "--out", str(copy)])
    assert ran.exit_code == 0, ran.output
    assert "[22/22] suspicions: 4 rows" in ran.stderr
    page = tmp_path / "day.html"
    told = runner.invoke(main, ["spark", "report", str(copy), "--out", str(page)])
    assert (told.exit_code, told.stdout) == (0, f"{page}\n")
    assert page.read_text("utf-8").startswith("<!doctype html>")
    for arguments, why in [
        (["run", str(copy), "--out", str(tmp_path / "x")], "no commit log in"),
        (["run", str(day.world.directory), "--out", str(tmp_path / "x"), "--from", "lives"], "unknown step 'lives'"),
        (["run", str(day.world.directory), "--out", str(tmp_path / "x"), "--available-now"], "give --stream too"),
        (
            ["run", str(day.world.directory), "--out", str(tmp_path / "x"), "--stream", "--without", "suspicions"],
            "--stream applies no rules",
        ),
        (["report", str(day.world.directory), "--out", str(page)], "is not an output of 'mqlab spark run'"),
    ]:
        refused = runner.invoke(main, ["spark", *arguments])
        assert (refused.exit_code, why in refused.stderr) == (2, True), refused.output
