"""The report page: whole, self-contained, escaped, readable without its pictures, and possible about nothing at all."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from mqlab.data.spark.report import write_report
from mqlab.data.spark.report.page import SECTIONS
from mqlab.data.spark.report.tables import FACTS
from mqlab.errors import UsageError
from tests.data.spark.pipeline.day import Day
from tests.data.spark.pipeline.world import POISON

pytestmark = pytest.mark.spark


class Outline(HTMLParser):
    """What a test wants to know of a page: ids, links, tags, names of pictures, and the text of each section."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.alts: list[str | None] = []
        self.text: dict[str, str] = {}
        self.tables: dict[str, int] = {}
        self.pictures: dict[str, int] = {}
        self._section = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        self.tags.append(tag)
        if tag not in ("meta", "path", "rect", "circle") or f"</{tag}>" in (self.get_starttag_text() or ""):
            self._open.append(tag)
        if tag == "section":
            self._section = said["id"] or ""
            self.ids.append(self._section)
        elif tag == "a":
            self.links.append(said["href"] or "")
        elif tag == "svg":
            self.alts.append(said["aria-label"])
            self.pictures[self._section] = self.pictures.get(self._section, 0) + 1
        elif tag == "table":
            self.tables[self._section] = self.tables.get(self._section, 0) + 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:  # a rect with a title in it is closed, and was not counted as open
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.text[self._section] = self.text.get(self._section, "") + data


def page_of(out: Path, tmp_path: Path) -> tuple[str, Outline]:
    text = write_report(out, tmp_path / "pages" / "day.html").read_text("utf-8")
    return text, Outline(text)


def test_the_page_of_a_day(day: Day, tmp_path: Path) -> None:
    text, outline = page_of(day.out, tmp_path)
    assert len(outline.ids) == len(SECTIONS)
    assert outline.links == [f"#{anchor}" for anchor in outline.ids]
    assert not {"script", "link", "img", "iframe", "object"} & set(outline.tags)
    assert "http://" not in text and "https://" not in text and "url(" not in text and "@import" not in text
    assert all(outline.alts) and len(outline.alts) > 10
    assert {name for name, count in outline.pictures.items() if count} <= outline.tables.keys()
    assert "prefers-color-scheme: dark" in text
    for kind in ("stuck message", "dead letters", "offset set back", "sent twice"):
        assert kind in outline.text["wrong"]
    assert POISON in outline.text["wrong"]
    for group in ("billing", "audit", "quiet"):
        assert group in outline.text["groups"]
    assert "writes no trace" in outline.text["groups"]
    assert "offset set back" in outline.text["again"]
    assert "NO_RESULT" in outline.text["listeners"]
    assert "broker-b" in outline.text["queues"]
    assert [path.name for path in (tmp_path / "pages").iterdir()] == ["day.html"]


def test_what_came_to_harm_is_listed_with_what_finds_it(day: Day, tmp_path: Path) -> None:
    """A lost message and a dead letter: ids, keys, the query for all of them, how to send a letter again."""
    out = Path(shutil.copytree(day.out, tmp_path / "out"))
    change(out, "group_tags", lost=3, messages=12)
    row = {
        "topic": "orders",
        "consumer_group": "billing",
        "tags": "shipped",
        "broker_name": "broker-a",
        "queue_id": 1,
        "queue_offset": 7,
        "msg_id": "0A…01",
        "keys": "<k-1>",
        "members": 1,
        "of": 3,
    }
    put(out, "lost", [row])
    change(out, "groups", lost=3, coverage=0.975)
    text, outline = page_of(out, tmp_path)
    assert "<k-1>" in outline.text["lost"] and "0A…01" in outline.text["lost"] and "25.0%" in outline.text["lost"]
    assert f"{out}/life" in outline.text["lost"] and "outcome = 'lost' AND" in outline.text["lost"]
    assert "97.50%" in outline.text["groups"]
    assert re.search(r'class="tile bad worst"><b>3</b><span>messages lost', text)
    dead = outline.text["dead"]
    assert POISON in dead and day.world.ids[POISON] in dead
    assert "resendDeadLetters" in dead and "kind = 'dead'" in dead


def test_a_day_stands_beside_another(day: Day, tmp_path: Path) -> None:
    """What differs is told group by group, what does not is not; a group of one day alone has dashes."""
    other = Path(shutil.copytree(day.out, tmp_path / "other"))
    rows = day.rows("groups")
    theirs = [{**row, "consumed": 5} for row in rows if row["consumer_group"] == "billing"]
    put(other, "groups", [*theirs, *({**row, "consumer_group": "mail"} for row in theirs)])
    text = write_report(day.out, tmp_path / "day.html", beside=other).read_text("utf-8")
    outline = Outline(text)
    assert outline.ids[:2] == ["wrong", "beside"] and outline.pictures["beside"] == 1
    section = text[text.index('id="beside"') :].partition("</section>")[0]
    cells = [re.findall("<td[^>]*>([^<]*)</td>", row) for row in section.split("<tr>")]
    (mine,) = [row for row in rows if row["consumer_group"] == "billing"]
    (consumed,) = [row for row in cells if row[:2] == ["billing ← orders", "consumed"]]
    assert consumed[2:] == [str(mine["consumed"]), "5", f"{mine['consumed'] / 5 - 1:+.1%}"]
    assert not [row for row in cells if row[:2] == ["billing ← orders", "dead letters"]]
    assert ["mail ← orders", "messages", "–", str(mine["messages"]), "–"] in cells
    assert "beside" not in page_of(day.out, tmp_path)[1].ids


def test_the_worst_of_a_quiet_day_is_nothing(day: Day, tmp_path: Path) -> None:
    out = Path(shutil.copytree(day.out, tmp_path / "out"))
    put(out, "suspicions", [])
    put(out, "duplicates", [])
    change(out, "groups", lost=0, dead=0, pending=0)
    text, _ = page_of(out, tmp_path)
    assert re.search(r'class="tile good worst"><b>0</b><span>nothing lost', text)


def test_percentiles_of_few_messages_are_not_drawn(day: Day, tmp_path: Path) -> None:
    """A line of p99 needs a hundred messages in a stretch, one of p90 ten."""
    out = Path(shutil.copytree(day.out, tmp_path / "out"))
    drawn = {}
    for messages in (9, 99, 100):
        change(out, "latency", messages=messages, p50_latency_ms=20, p90_latency_ms=30, p99_latency_ms=40)
        text, _ = page_of(out, tmp_path)
        section = text[text.index('id="latency"') :].partition("</section>")[0]
        drawn[messages] = re.findall(r'class="name t\d" text-anchor="start">(p\d\d)', section)
    assert [set(names) for names in drawn.values()] == [{"p50"}, {"p50", "p90"}, {"p50", "p90", "p99"}]


def put(out: Path, fact: str, rows: list[dict[str, Any]]) -> None:
    """Write these rows instead of those of a fact; columns that a row lacks are null."""
    files = sorted((out / "facts" / fact).glob("*.parquet"))
    schema = pyarrow.parquet.read_schema(files[0])
    for path in files:
        path.unlink()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), files[0])


def test_names_are_escaped(day: Day, tmp_path: Path) -> None:
    """Keys and tags are what senders like them to be."""
    out = Path(shutil.copytree(day.out, tmp_path / "out"))
    change(out, "suspicions", subject='<script>alert("订单")</script>')
    change(out, "keys", message_key="<b>&", messages=7)
    change(out, "traffic", tags="</svg><i>")
    text, outline = page_of(out, tmp_path)
    assert "<script" not in text and "<i>" not in text.replace('<i class="b', "")
    assert '<script>alert("订单")</script>' in outline.text["wrong"]
    assert "<b>&" in outline.text["keys"]


def change(out: Path, fact: str, **values: Any) -> None:
    """Set columns of all rows of a fact."""
    files = sorted((out / "facts" / fact).glob("*.parquet"))
    table = pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in files])
    for name, value in values.items():
        at = table.schema.get_field_index(name)
        column = pyarrow.array([value] * len(table), type=table.schema.field(name).type)
        table = table.set_column(at, name, column)
    for path in files:
        path.unlink()
    pyarrow.parquet.write_table(table, files[0])


def test_a_run_over_nothing_has_a_page(day: Day, tmp_path: Path) -> None:
    """All tables empty, as a store without a message gives them."""
    out = Path(shutil.copytree(day.out, tmp_path / "out"))
    manifest = json.loads((out / "pipeline.json").read_text("utf-8"))
    (out / "pipeline.json").write_text(json.dumps({**manifest, "span_ms": [0, 0], "stretch_ms": 1000}))
    for fact in FACTS:
        files = sorted((out / "facts" / fact).glob("*.parquet"))
        nothing = pyarrow.parquet.read_schema(files[0]).empty_table()
        for path in files:
            path.unlink()
        pyarrow.parquet.write_table(nothing, files[0])
    _, outline = page_of(out, tmp_path)
    assert "No rule found anything" in outline.text["wrong"]
    assert "no message was sent" in outline.text["traffic"]
    assert len(outline.ids) == len(SECTIONS)


def test_only_a_finished_run_has_a_page(day: Day, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"not an output of 'mqlab spark run'[\s\S]*run it first"):
        write_report(day.world.directory, tmp_path / "x.html")
    out = Path(shutil.copytree(day.out, tmp_path / "out"))
    shutil.rmtree(out / "facts" / "lag")
    with pytest.raises(UsageError, match=r"not finished: lag are missing[\s\S]*continues"):
        write_report(out, tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()
