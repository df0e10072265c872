"""The knows board: its runs are Labs, beliefs change when a client asks, its page has what it lets a reader choose."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.course.widgets import KnowsBoard, knows_board
from mqlab.course.widgets.boards.knows.board import RECORDED
from mqlab.course.widgets.boards.knows.runs import KnowsSettings, play_knows
from mqlab.course.widgets.frame.recorded_board import key_of
from mqlab.errors import UsageError


def board(**settings: Any) -> KnowsBoard:
    return knows_board(**{"recorded": {}, **settings})


def test_a_killed_broker_is_known_at_once_by_the_name_server_and_later_by_who_asks() -> None:
    learned = board(happens="kill").learned()
    assert learned["nameserver-1"] == 0.5
    assert learned["shop"] is not None and 1 < learned["shop"] <= 30
    assert learned["billing"] is not None and learned["billing"] >= learned["shop"]


@pytest.mark.parametrize("register_s", [10, 30])
def test_silence_is_known_after_120_s_counted_from_the_last_registration(register_s: int) -> None:
    shown = board(happens="power_off", register_s=register_s)
    learned = shown.learned()["nameserver-1"]
    assert learned is not None and 120 - register_s < learned <= 126
    assert shown.failed > 30 and shown.wasted == shown.failed


def test_clients_that_ask_more_often_know_sooner_and_send_less_in_vain() -> None:
    seldom, often = board(poll_s=30), board(poll_s=5)
    assert (often.learned()["shop"] or 99) <= 5 < (seldom.learned()["shop"] or 0)
    assert often.wasted < seldom.wasted and seldom.failed == 0


def test_two_name_servers_may_disagree_and_so_do_their_clients() -> None:
    shown = board(happens="partition", name_servers=2)
    learned = shown.learned()
    assert learned["nameserver-1"] and learned["nameserver-2"] is None
    asks = shown.run.asks
    for client in ("shop", "billing"):
        assert (learned[client] is None) == (asks[client] == "nameserver-2")


def test_a_wiped_permission_stops_the_shop_and_not_billing() -> None:
    shown = board(happens="wipe")
    table = {row["who"]: row for row in shown.at("2m")}
    assert table["shop"]["broker-b"] == "none" and table["billing"]["broker-b"] == "4 to read"
    assert shown.failed == shown.wasted == 0


@pytest.mark.parametrize(("happens", "queues"), [("queues", "8 to write"), ("joins", "4 to write")])
def test_more_of_something_is_known_by_everybody_in_the_end(happens: str, queues: str) -> None:
    table = {row["who"]: row for row in board(happens=happens).at("100s")}
    assert table["shop"]["broker-b"] == queues
    assert table["billing"]["broker-b"] == queues.replace("write", "read")


def test_the_page_has_every_run_that_it_lets_a_reader_choose() -> None:
    recorded = {**RECORDED, "happens": ("kill", "wipe")}
    data = knows_board(recorded=recorded).data()
    assert len(data["runs"]) == 2 * 2 * 2
    settings = KnowsSettings("wipe", 2, 10)
    assert len(data["runs"][key_of(settings)]["sends"]) == len(play_knows(settings).sends)


def test_the_page_plays_and_a_cell_reads_what_it_shows() -> None:
    shown = board()
    shown.set("moment_ms", 30_000)
    answer = shown.asked("play", {"happens": "wipe", "name_servers": 2, "poll_s": 10, "register_s": 30})
    assert shown.settings == KnowsSettings("wipe", 2, 10) and len(answer["sends"]) == len(shown.sends())
    assert shown.play(happens="kill").state == {"moment_ms": 0} and shown.table().title == shown.summary
    with pytest.raises(UsageError, match="cannot answer"):
        shown.asked("stop", {})
    with pytest.raises(UsageError, match="nobody is called 'bank'"):
        shown.run.believes("bank", 0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"happens": "fire"}, "happens must be one of"),
        ({"name_servers": 3}, "name_servers must be a whole number from 1 to 2"),
        ({"poll_s": True}, "poll_s must be a whole number"),
        ({"register_s": 61}, "register_s must be a whole number from 10 to 60"),
        ({"brokers": 2}, "no setting 'brokers'"),
    ],
)
def test_wrong_settings_are_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        board().play(**wrong)
