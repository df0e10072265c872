"""The console without a page: what it shows is what lab.admin answers, and nothing changes without a confirmation."""

from __future__ import annotations

import zlib
from base64 import b64decode
from json import loads
from pathlib import Path
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message
from mqlab.course.widgets import Console, console
from mqlab.course.widgets.boards.console.section import PageSection, section
from mqlab.errors import BrokerError, UsageError
from mqlab.lab.views import Table
from tests.course.widgets.console_world import reads, shop_lab


def table(board: Console, title: str) -> Table:
    found = board.sections()[title]
    assert isinstance(found, Table), found
    return found


def packed(answer: dict[str, Any]) -> Any:
    return loads(zlib.decompress(b64decode(answer["packed"])))


def test_each_page_shows_what_lab_admin_answers() -> None:
    lab = shop_lab()
    board = console(lab)
    assert board.table().column("broker") == ["broker-a"] and table(board, "Producers").column("group")[-1] == "shop"
    topics = {row["topic"]: row for row in board.open("topics").table()}
    assert topics["orders"]["messages"] == 6 and topics["orders"]["read_queues"] == 2
    assert {topics[name]["kind"] for name in ("orders", "%DLQ%billing", "%RETRY%audit", "TBW102")} == {
        "NORMAL",
        "DLQ",
        "RETRY",
        "SYSTEM",
    }

    board.open("topic", "orders")
    assert table(board, "Queues").column("max_offset") == [
        row.max_offset for row in lab.admin.examine_topic_stats("orders")
    ]
    assert table(board, "Groups that read it").column("group") == ["archive", "audit", "billing"]
    assert {row["keys"] for row in table(board, "Newest messages")} == {"order-5", "order-6"}

    groups = {row["group"]: row for row in board.open("groups").table()}
    assert groups["billing"]["dead_letters"] == 1 and groups["audit"]["members"] == 2
    assert groups["archive"]["members"] == 0
    lab.producer("late").send(Message("orders", b"late"))
    lab.run_for("1s")
    assert {row["group"]: row["lag"] for row in board.table()} == {
        name: lab.admin.examine_consume_stats(name).total_diff for name in groups
    }


def test_members_that_disagree_are_named_and_one_that_is_alone_is_not() -> None:
    board = console(shop_lab()).open("group", "audit")
    rows = table(board, "Subscriptions, member by member")
    differing = [(row["client_id"], row["topic"], row["expression"]) for row in rows if "differs" in row["compared"]]
    assert differing == [("10.0.0.5@audit-2", "orders", "new")]
    data = board.data()["pages"]
    notes = {group: _notes(data[f"group {group}"], "Subscriptions, member by member") for group in ("audit", "billing")}
    assert notes["audit"] == ["Not consistent: 1 of 2 members differ from the first. A group must agree."]
    assert notes["billing"] == ["One member: nothing to compare."]
    # A group without members: the broker's own words, and the other parts are there.
    offline = board.open("group", "archive").sections()
    assert "CODE: 206" in str(offline["Members"]) and isinstance(offline["Progress"], Table)


def test_two_members_that_agree_are_consistent() -> None:
    lab = Lab(seed=1)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    for number in (1, 2):
        reads(lab, "audit", f"audit-{number}", "paid || new", lambda messages, _: CONSUME_SUCCESS)
    lab.run_for("25s")
    (found,) = [each for each in console(lab).data()["pages"]["group audit"] if "Subscriptions" in each["title"]]
    assert found["notes"] == ["Consistent: all 2 members subscribe to the same."]


def _notes(sections: list[dict[str, Any]], title: str) -> list[str]:
    return next(each["notes"] for each in sections if each["title"] == title)


def test_messages_are_found_by_key_ids_and_time_and_a_copy_leads_to_its_origin() -> None:
    lab = shop_lab()
    board = console(lab)
    (found,) = board.find("order-3", topic="orders")
    assert found["body"].decode() == "заказ 订单 3"
    message = lab.admin.view_message(found["offset_msg_id"])
    assert board.find(message.msg_id, by="unique id", topic="orders").to_dicts() == [found.as_dict()]
    assert board.find(found["offset_msg_id"], by="offset id").to_dicts() == [found.as_dict()]
    at = str(found["store_timestamp"])
    assert board.find(by="time", topic="orders", begin=at, end=at).column("keys") == ["order-3"]
    assert len(board.find(by="time", topic="orders")) == 6

    (letter,) = lab.admin.query_dlq("billing")
    board.open("message", letter.offset_msg_id)
    assert table(board, "Copy of").column("offset_msg_id") == [found["offset_msg_id"]]
    assert {row["group"]: row["track_type"] for row in table(board, "In each group")} == {
        row.group: row.track_type for row in lab.admin.message_track_detail(message)
    }
    assert table(board, "Trace").column("type") == [row.type for row in lab.admin.view_trace(letter.msg_id)]
    for wrong in ({"by": "colour"}, {"text": "order-3"}, {"topic": "orders"}, {"by": "time"}):
        with pytest.raises(UsageError):
            board.find(**wrong)
    with pytest.raises(BrokerError):
        board.find("order-3", topic="ordres")


def test_a_reset_is_previewed_and_only_its_confirmation_moves_the_group() -> None:
    lab = shop_lab()
    board = console(lab)

    def confirmed() -> list[int]:
        stats = lab.admin.examine_consume_stats("archive", "orders")
        return [each.consumer_offset for each in stats.queues]

    plan = board.preview_reset("orders", "archive", "first")
    assert plan.column("again") == [3, 3] and confirmed() == [3, 3] and len(board.changes()) == 0
    board.cancel()
    with pytest.raises(UsageError, match="no change waits"):
        board.confirm()
    board.preview_reset("orders", "archive", "first")
    assert board.confirm().column("target_offset") == [0, 0] == confirmed()
    with pytest.raises(UsageError, match="no change waits"):
        board.confirm()
    board.preview_reset("orders", "archive", "end")
    board.confirm()
    assert confirmed() == [3, 3]
    third = lab.admin.query_message("orders", "order-3")[0]
    board.preview_reset("orders", "archive", str(third.store_timestamp))
    board.confirm()
    assert confirmed() == [1, 1] and len(board.changes()) == 3
    assert board.changes()[2]["call"] == f"reset_offset_by_timestamp('orders', 'archive', {third.store_timestamp})"
    with pytest.raises(UsageError, match="cannot read the time"):
        board.preview_reset("orders", "archive", "yesterday")


def test_dead_letters_are_previewed_and_then_sent_back_once() -> None:
    lab = shop_lab()
    board = console(lab)
    (letter,) = board.preview_resend("billing")
    assert letter["keys"] == "order-3" and lab.admin.examine_topic_stats("%RETRY%billing")[0].max_offset == 1
    assert board.confirm().column("send_status") == ["SEND_OK"]
    lab.run_for("1m")
    # It failed again, so there are two letters of one message, of which the newer one counts.
    letters = list(lab.admin.query_dlq("billing"))
    assert len(letters) == 2
    assert board.preview_resend("billing").column("offset_msg_id") == [letters[1].offset_msg_id]
    assert len(board.preview_resend("billing", [letters[0].offset_msg_id])) == 1
    with pytest.raises(UsageError, match="no dead letter of billing"):
        board.preview_resend("billing", ["0A00000200002A9F0000000000000000"])
    with pytest.raises(UsageError, match="audit has no dead letters"):
        board.preview_resend("audit")


def test_the_page_is_answered_and_cannot_confirm_what_it_did_not_show() -> None:
    lab = shop_lab()
    board = console(lab)
    before = lab.now_ms
    first = packed(board.answer("preview", {"group": "archive", "topic": "orders", "to": "first"}))
    assert first["question"] == "Reset archive on orders? Messages read again: 6; skipped: 0."
    second = packed(board.answer("preview", {"group": "billing", "letters": None}))
    assert "no change waits" in board.answer("confirm", {"change": first["change"]})["error"]
    done = packed(board.answer("confirm", {"change": second["change"]}))
    assert done["sections"][0]["rows"][0][2] == "SEND_OK"
    packed(board.answer("wait", {"duration": "10s"}))
    assert lab.now_ms - before > 10_000
    assert "CODE: 17" in packed(board.answer("page", {"place": "topic nothing"}))["sections"][0]["error"]
    assert "no page 'colours'" in board.answer("page", {"place": "colours"})["error"]
    assert "not a duration" in board.answer("wait", {"duration": "soon"})["error"]
    assert "cannot answer" in board.answer("dance", {})["error"]


def test_a_broker_that_cannot_be_reached_leaves_the_words_of_the_error_in_its_parts() -> None:
    lab = shop_lab()
    board = console(lab)
    assert board.table().column("broker") == ["broker-a"]
    lab.partition("admin", "broker-a")
    found = board.sections()
    assert "10.0.0.2:10911" in str(found["Brokers"]) and isinstance(found["Brokers"], str)
    assert isinstance(found["Name servers"], Table) and "10.0.0.2:10911" in board.html()
    topics = {row["topic"]: row for row in board.open("topics").table()}
    assert topics["orders"]["write_queues"] == 2 and "10.0.0.2:10911" in topics["orders"]["problem"]
    lab.heal()
    assert board.open("cluster").table().column("broker") == ["broker-a"]
    lab.kill("broker-a")
    assert len(board.table()) == 0


def test_recorded_pages_are_the_lists_their_topics_and_groups_and_one_message() -> None:
    lab = shop_lab()
    (letter,) = lab.admin.query_dlq("billing")
    pages = console(lab).data()["pages"]
    assert list(pages) == [
        "cluster",
        "topics",
        "groups",
        "messages",
        "topic orders",
        "topic payments",
        "group archive",
        "group audit",
        "group billing",
        f"message {letter.offset_msg_id}",
    ]
    assert [row[2] for row in pages["messages"][0]["rows"]] == ["order-6", "order-5"]  # newest first
    chosen = lab.admin.query_message("orders", "order-1")[0].offset_msg_id
    board = console(lab, message=chosen).open("topic", "%DLQ%billing")
    assert list(board.data()["pages"])[-2:] == [f"message {chosen}", "topic %DLQ%billing"]
    assert "заказ 订单 5" in board.html() and "max_offset" in str(board)


def test_a_directory_is_looked_at_and_its_files_stay_as_they_are(tmp_path: Path) -> None:
    with Lab(seed=3, brokers=2, directory=tmp_path / "run") as lab:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        reads(lab, "billing", "billing-1", "*", lambda messages, _: CONSUME_SUCCESS)
        for number in range(4):
            lab.producer(f"shop{number}").send(Message("orders", b"a book", keys=f"order-{number}"))
        lab.run_for("20s")
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    board = console(tmp_path / "run")
    assert board.table().column("broker") == ["broker-a", "broker-b"] and not board.data()["can_wait"]
    assert str(tmp_path / "run") in board.where
    board.preview_reset("orders", "billing", "first")
    assert sum(board.confirm().column("again")) == 4
    assert board.lab.admin.examine_consume_stats("billing", "orders").total_diff == 4
    board.lab.close()
    assert {path: path.read_bytes() for path in files} == before
    assert sum(console(tmp_path / "run").open("group", "billing").table().column("lag")) == 0
    with pytest.raises(UsageError, match="neither a store nor a Lab's directory"):
        console(tmp_path / "nothing")


def test_pages_that_do_not_exist_and_long_tables() -> None:
    board = console(Lab())
    with pytest.raises(UsageError, match="no page 'colours'"):
        board.open("colours")
    with pytest.raises(UsageError, match="needs a name"):
        board.open("topic")
    assert board.state == {"place": "cluster"}
    long = PageSection("Rows", "", Table([{"number": number} for number in range(203)])).as_json()
    assert (
        len(long["rows"]) == 200 and long["notes"] == ["3 more rows are not shown here."] and long["numbers"] == [True]
    )

    def refuses() -> Any:
        raise BrokerError(1, "no")

    assert section("Rows", "", refuses).error == "CODE: 1  DESC: no"


def test_without_dead_letters_the_newest_message_is_recorded() -> None:
    lab = Lab(seed=2)
    for topic in ("orders", "payments"):
        lab.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    sent = [shop.send(Message(topic, b"a book")) for topic in ("orders", "payments", "orders")]
    assert list(console(lab).data()["pages"])[-1] == f"message {sent[-1].offset_msg_id}"
    assert list(console(Lab()).data()["pages"]) == ["cluster", "topics", "groups", "messages"]
