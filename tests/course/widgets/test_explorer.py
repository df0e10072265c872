from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab
from mqlab.course.widgets import Explorer, explore
from mqlab.course.widgets.boards.time_machine.forks import Fault, Fork
from mqlab.course.widgets.frame.packing import packed
from mqlab.errors import UsageError
from mqlab.lab.views.queue import QueueView, show_queue
from tests.course.widgets.stories import NO_TRACE, day, five_hours


def queue_now(lab: Lab) -> list[QueueView]:
    return [show_queue(lab, "orders")] if "orders" in lab.store().topics() else []


def machine(**arguments: Any) -> Explorer:
    return explore(day, seed=7, show=queue_now, client=NO_TRACE, **arguments)


def ask(explorer: Explorer, name: str, **arguments: Any) -> str:
    """What the page is told: "" or the words of an error."""
    return explorer.answer(name, arguments).get("error", "")


def texts(shown: Any) -> list[str]:
    happened = shown["happened"]
    return [happened["texts"][moment[5]] for moment in happened["moments"]]


def test_the_page_gets_every_stop_with_its_own_facts_and_views() -> None:
    explorer = machine()
    story = explorer.data()["story"]
    assert len(story["steps"]) == len(explorer.stepper) == len(story["place_of"]) - 1
    assert all(story["exact"]) and story["place_of"][0] == -1
    for position in range(1, len(explorer.stepper) + 1):
        lab = explorer.stepper.go_to(position).lab
        rows, views = story["places"][story["place_of"][position]]
        # What was recorded while the story played is what a replay finds at that stop.
        (log,) = [row for row in map(story["rows"].__getitem__, rows) if row[0] == "log"]
        assert log[4] == lab.store().max_physical_offset
        queues = [row for row in map(story["rows"].__getitem__, rows) if row[0] == "queue"]
        assert [row[6] for row in queues] == [queue.max_offset for queue in lab.store().queues()]
        assert len(views) == len(queue_now(lab))


def test_a_unit_is_shown_from_the_moment_it_is_stored_and_has_its_bytes() -> None:
    explorer = machine()
    story = explorer.data()["story"]
    at = next(i for i, text in enumerate(texts(story)) if text == "stored at byte 0")
    position = story["steps"].index(story["happened"]["moments"][at][0]) + 1
    rows = [story["rows"][number] for number in story["places"][story["place_of"][position]][0]]
    assert [row[5] for row in rows if row[0] == "log"] == [[0]] and not [row for row in rows if row[0] == "queue"]
    broker, offset, size, label, digits, fields = story["units"][0]
    assert (broker, offset, label) == ("broker-a", 0, "заказ-1")
    assert bytes.fromhex(digits) == b"".join(field.raw for field in explorer.recording.lab.store().hexdump(0).fields)
    assert sum(field[2] for field in fields) == size


def test_arrows_have_their_sending_and_bars_their_ends() -> None:
    story = machine().data()["story"]["happened"]
    lanes, names = story["lanes"], story["texts"]
    first = next(moment for moment in story["moments"] if names[moment[5]] == "SEND_MESSAGE_V2")
    assert (lanes[first[2]], lanes[first[3]]) == ("shop-1", "broker-a")
    assert first[8] == [31, -1] and first[1] == 0  # sent a millisecond before it arrived
    kinds = {names[bar[6]]: (lanes[bar[0]], bar[1], bar[3], bar[5]) for bar in story["bars"]}
    assert kinds["SEND_MESSAGE_V2"][:2] == ("shop-1", "request")
    held = kinds["held: billing-1 waits for entry 3 of orders 0"]
    assert held[:2] == ("broker-a", "held") and held[2] > 0
    assert "UPDATE_CONSUMER_OFFSET" not in kinds  # one way: nothing waits for an answer


def test_moments_bytes_queues_and_offsets_have_common_links() -> None:
    story = machine().data()["story"]["happened"]
    links = {story["texts"][m[5]]: {story["texts"][n] for n in m[7]} for m in story["moments"]}
    assert "unit broker-a 233" in links["stored at byte 233"]
    assert links["stored at byte 233"] & links["listener starts: entry 1"] != set()
    assert "entry broker-a orders 0 1" in links["orders 0: entry 1 points there"]
    assert "group billing broker-a orders 0" in links["billing: next of orders 0 is 3"]


def test_a_slider_of_a_page_moves_the_controller() -> None:
    explorer = machine()
    explorer.widget.position = 4
    assert explorer.state["position"] == explorer.stepper.position == 4
    assert [row.stop for row in explorer.table() if row.here] == [4]
    assert len(explorer.lab.journal) == explorer.stepper.step_number + 1


def test_the_storys_keywords_are_controls_and_play_again() -> None:
    explorer = machine(knobs={"orders": (1, 5), "rest": ["1s", "30s"]})
    orders, rest, seed = explorer.data()["knobs"]
    assert (orders["min"], orders["max"], orders["value"], orders["step"]) == (1, 5, 3, 1)
    assert (rest["kind"], rest["choices"], seed["value"]) == ("choice", ["1s", "30s"], 7)
    before = len(explorer.recording.lab.deliveries("billing"))
    assert ask(explorer, "play", seed=8, parameters={"orders": 5, "rest": "1s"}) == ""
    assert explorer.state["parameters"] == {"orders": 5, "rest": "1s"} and explorer.state["seed"] == 8
    assert (before, len(explorer.recording.lab.deliveries("billing"))) == (3, 5)
    assert explorer.lab.seed == 8


def test_a_story_that_fails_leaves_the_old_one() -> None:
    explorer = machine()
    assert "UsageError" in ask(explorer, "play", seed=7, parameters={"rest": "soon"}) or "soon" in ask(
        explorer, "play", seed=7, parameters={"rest": "soon"}
    )
    assert explorer.state["parameters"]["rest"] == "30s" and len(explorer.stepper) > 10
    assert "no parameter 'coins'" in ask(explorer, "play", seed=7, parameters={"coins": 1})


def test_knobs_that_the_story_does_not_have_are_refused() -> None:
    with pytest.raises(UsageError, match="no parameter 'coins'"):
        machine(knobs={"coins": (1, 2)})


def test_a_fork_stands_beside_the_story_with_the_first_difference() -> None:
    explorer = machine()
    position = next(i for i in range(1, 99) if "entry 2 points there" in explorer.stepper.go_to(i).label)
    step = explorer.stepper.step_number + 1
    told = ask(explorer, "fork", kind="kill", position=position, target="billing-1", delay="", back="")
    assert told == "" and explorer.fork is not None and explorer.state["branch"] == "fork"
    data = explorer.data()
    assert data["fork"]["words"] == f"kill billing-1 before step {step}"
    at, other = data["fork"]["first"]
    story, fork = explorer.recording.moments, explorer.fork.recording.moments
    assert (story[at].now_ms, story[at].text) != (fork[other].now_ms, fork[other].text)
    assert [m.text for m in story[:at]] == [m.text for m in fork[:other] if m.text != "killed"]
    assert [m.lane for m in fork if m.text == "killed"] == ["billing-1"] and explorer.lab is explorer.fork.recording.lab
    assert ask(explorer, "forget") == "" and explorer.data()["fork"] is None and explorer.state["branch"] == "story"


def test_a_fork_of_a_fork_has_both_faults_up_to_where_it_begins() -> None:
    explorer = machine()
    told = ask(explorer, "fork", kind="slow", position=2, target="broker-a", delay="200ms", back="")
    assert told == "" and explorer.fork is not None
    first = explorer.fork
    done = next(m for m in first.recording.moments if "CONSUME_SUCCESS" in m.text)
    position = first.recording.steps.index(done.step) + 1
    assert ask(explorer, "fork", kind="kill", position=position, target="billing-1", delay="", back="") == ""
    both = explorer.fork
    assert both.words == f"{first.words}; then kill billing-1 before step {(done.step or 0) + 1}"
    assert explorer.data()["fork"]["words"] == both.words and explorer.state["branch"] == "fork"
    # 1. Up to the second fault the two forks are the same, and the first fault is in it.
    before = [m for m in both.recording.moments if (m.step or 0) <= (done.step or 0)]
    assert before == [m for m in first.recording.moments if (m.step or 0) <= (done.step or 0)]
    killed = next(m for m in both.recording.moments if m.text == "killed")
    assert killed.lane == "billing-1" and killed.now_ms == done.now_ms and both.first == first.first
    # 2. A fault at the stop of the fault before it is made together with it.
    assert (
        ask(explorer, "fork", kind="slow", position=explorer.state["position"], target="broker-a", delay="1s", back="")
        == ""
    )
    assert explorer.fork is not None and explorer.fork.words.startswith(f"{both.words}; then slow broker-a by 1s")
    assert [m.text for m in explorer.fork.recording.moments if m.kind == "fault"].count("killed") == 1
    # 3. A fault before the others leaves them behind.
    assert ask(explorer, "fork", kind="kill", position=1, target="billing-1", delay="", back="") == ""
    assert explorer.fork is not None and [each.words[:4] for each in explorer.fork.faults] == ["kill"]


def test_a_killed_broker_comes_back_and_its_rows_say_that_it_was_down() -> None:
    explorer = machine()
    assert ask(explorer, "fork", kind="power_off", position=8, target="broker-a", delay="", back="2s") == ""
    assert explorer.fork is not None
    recorded = explorer.fork.recording.data()
    assert "power off broker-a before step" in explorer.fork.words and "start it after 2s" in explorer.fork.words
    assert {row[2] for row in recorded["rows"] if row[0] == "log"} == {True, False}
    assert explorer.lab.broker("broker-a").is_up


def test_a_dropped_frame_is_lost_and_a_slow_link_is_late() -> None:
    explorer = machine()
    moments = explorer.recording.moments
    frame = next(i for i, m in enumerate(moments) if m.text == "UPDATE_CONSUMER_OFFSET")
    assert ask(explorer, "fork", kind="drop", position=3, target=frame, delay="", back="") == ""
    assert explorer.fork is not None and explorer.fork.first[0] == frame
    assert explorer.lab.journal.changes("frame.dropped")
    assert ask(explorer, "fork", kind="slow", position=3, target="broker-a", delay="200ms", back="") == ""
    late = [m.now_ms for m in explorer.fork.recording.moments if m.kind == "message.sent"]
    assert late[-1] > [m.now_ms for m in moments if m.kind == "message.sent"][-1] + 200


def test_faults_without_meaning_are_refused_with_words() -> None:
    explorer = machine()
    assert "not a frame" in ask(explorer, "fork", kind="drop", position=1, target=1, delay="", back="")
    assert "unknown kind" in ask(explorer, "fork", kind="melt", position=1, target="shop-1", delay="", back="")
    after = Fault(explorer.recording.lab.journal.next_step, lambda lab: None, "nothing")
    with pytest.raises(UsageError, match="the story ends here"):
        Fork.of(explorer.recording, after, story=day)


def test_a_fork_whose_story_raises_shows_what_happened_until_then() -> None:
    explorer = machine()
    position = next(i for i in range(1, 99) if "entry 0 points there" in explorer.stepper.go_to(i).label)
    assert ask(explorer, "fork", kind="kill", position=position, target="broker-a", delay="", back="") == ""
    assert explorer.fork is not None and explorer.fork.recording.error
    assert "killed" in texts(explorer.fork.recording.data())


def test_long_stories_are_thinned_and_the_kernel_gives_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab.course.widgets.boards.time_machine.recording.MOST_STOPS", 10)
    explorer = machine()
    story = explorer.data()["story"]
    assert len(story["places"]) <= 10 and 0 < sum(story["exact"]) < len(story["steps"])
    missing = story["exact"].index(0) + 1
    wanted = [str(view.html()) for view in queue_now(explorer.stepper.go_to(missing).lab)]
    given = explorer.asked("views", {"position": missing})
    assert len(given) == len(wanted) and all("<svg" in text and "base64" not in text for text in given)


def test_five_hours_are_small_and_quick_to_move_in() -> None:
    explorer = explore(five_hours, seed=7, client=NO_TRACE)
    data = explorer.data()
    assert len(data["story"]["steps"]) > 150
    assert len(packed(data)) < 60_000  # the whole story: the page must stay under 3 MB with several of them
    answers: list[float] = []
    explorer.stepper.go_to(len(explorer.stepper) - 1).bring_lab(answers.append)
    assert answers == sorted(answers) and len(answers) > 10 and answers[-1] <= 1
    assert "before step" in explorer.asked("lab", {})["words"]


def test_the_page_without_scripts_has_a_picture_and_the_table() -> None:
    explorer = machine()
    page = str(explorer.html())
    still = page[page.index("mqlab-readable") : page.index("mqlab-data")]
    assert "<img" in still and "<table>" in still and "stored at byte 466" in still
    assert explorer.state["position"] == explorer.stepper.position == 0
