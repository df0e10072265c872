"""Things to click in a notebook, each a thin shell over a plain controller that tests and scripts can use, too.

Mirrors: the moving parts of RocketMQ Dashboard's pages. Lab 00 has the first one.

    explore(story, seed=7)      the time machine: move in a story, change it, fork it; its controller is a Stepper
    crash_matrix(variants, …)   variants of an answer, and how each ends for every place of a crash
    log_xray()                  a real store: every action, its bytes, and what a crash takes
    console(lab)                RocketMQ Dashboard's pages over a Lab or a store directory
    retry_clock()               an order that fails, on an axis of log time, with the learner's settings
    long_poll_scope()           pulls that the broker holds, next to a program that asks every n milliseconds
    backlog_tank()              a drawn curve of traffic, the lag it leaves behind, and the limit that binds
    offset_strip()              messages finished in any order, and what each place knows of the offset; crash now
    tag_trap_board()            two members with different tags: each order's way through both filters
    knows_board()               what name servers, a shop and billing believe about a broker that dies, changes or joins
    lease_board()               orders on lease to members that work, hang or die; what comes back
    wheel_board()               reminders in a timer wheel that turns; what rolls, what a recall and a lost file do
    lanes_board()               events in threads, in order, or in lanes of one order each; who overtakes whom
    biography_board(units, …)   what happened to a message, in the log and in each group, event by event
    percentile_board(samples)   two samples whose sizes are moved: the percentile of both, and the mean of the two
    echo_chart(calls)           when messages were stored, and when a group was called with them
    watermark_board(looks)      what a stream that counts by time keeps, gives and drops, batch by batch
    allocation_board()          who reads which queue, over joins and leaves; the hash ring; a queue with two owners

Each is a Board (mqlab.course.widgets.frame.board): data made once, and a module of mqlab/course/widgets that shows it
with and without a kernel. ``.table()`` gives its facts as text, ``.state`` what the learner has chosen.
Each is imported when it is first used: a notebook shows one or two of them.

To make a board: a folder boards/tank with ``board.py`` (a Board: ``data``, ``table``, ``asked``) and ``tank.js``, whose
``export default { render }`` gets ``{ model, el }`` and draws; both are described in frame/board.py. The JavaScript is
modules that import each other (controls, sliders and colours are in frame/page); frame/bundle.py makes one of them for
a notebook, a page or a widget. What can be said without a page (layouts, sentences, next states) is a pure function in
a module next to it, with a test in tests/course/widgets/javascript, which node runs. oxlint holds the rules: functions
of at most 60 lines, no name without its import. Runs that take a second are kept in ``tank.json`` (keep_runs.py). Then
name it here and show it in labs/explorers; ``make labs ARGS=--keep-outputs`` brings new JavaScript into notebooks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.lazy_names import lazy_names

if TYPE_CHECKING:
    from mqlab.course.widgets.boards.allocation import AllocationBoard, allocation_board
    from mqlab.course.widgets.boards.backlog.tank import BacklogTank, backlog_tank
    from mqlab.course.widgets.boards.biography.board import BiographyBoard, biography_board, biography_of_run
    from mqlab.course.widgets.boards.console.board import Console, console
    from mqlab.course.widgets.boards.crash_matrix.board import CrashMatrix, crash_matrix
    from mqlab.course.widgets.boards.echoes.board import EchoChart, echo_chart
    from mqlab.course.widgets.boards.knows.board import KnowsBoard, knows_board
    from mqlab.course.widgets.boards.lanes.board import LanesBoard, lanes_board
    from mqlab.course.widgets.boards.leases.board import LeaseBoard, lease_board
    from mqlab.course.widgets.boards.log_xray.board import LogXray, log_xray
    from mqlab.course.widgets.boards.long_poll.scope import LongPollScope, long_poll_scope
    from mqlab.course.widgets.boards.offset_strip import OffsetStripBoard, offset_strip
    from mqlab.course.widgets.boards.percentiles.board import PercentileBoard, percentile_board
    from mqlab.course.widgets.boards.retry_clock.board import RetryClock, retry_clock
    from mqlab.course.widgets.boards.tag_trap.board import TagTrapBoard, tag_trap_board
    from mqlab.course.widgets.boards.time_machine.explorer import Explorer, explore
    from mqlab.course.widgets.boards.time_machine.stepper import Stepper
    from mqlab.course.widgets.boards.watermark.board import WatermarkBoard, watermark_board
    from mqlab.course.widgets.boards.wheel.board import WheelBoard, wheel_board

__all__ = [
    "AllocationBoard",
    "BacklogTank",
    "BiographyBoard",
    "Console",
    "CrashMatrix",
    "EchoChart",
    "Explorer",
    "KnowsBoard",
    "LanesBoard",
    "LeaseBoard",
    "LogXray",
    "LongPollScope",
    "OffsetStripBoard",
    "PercentileBoard",
    "RetryClock",
    "Stepper",
    "TagTrapBoard",
    "WatermarkBoard",
    "WheelBoard",
    "allocation_board",
    "backlog_tank",
    "biography_board",
    "biography_of_run",
    "console",
    "crash_matrix",
    "echo_chart",
    "explore",
    "knows_board",
    "lanes_board",
    "lease_board",
    "log_xray",
    "offset_strip",
    "long_poll_scope",
    "percentile_board",
    "retry_clock",
    "tag_trap_board",
    "watermark_board",
    "wheel_board",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "boards.allocation": ("AllocationBoard", "allocation_board"),
        "boards.backlog.tank": ("BacklogTank", "backlog_tank"),
        "boards.console.board": ("Console", "console"),
        "boards.crash_matrix.board": ("CrashMatrix", "crash_matrix"),
        "boards.biography.board": ("BiographyBoard", "biography_board", "biography_of_run"),
        "boards.echoes.board": ("EchoChart", "echo_chart"),
        "boards.percentiles.board": ("PercentileBoard", "percentile_board"),
        "boards.watermark.board": ("WatermarkBoard", "watermark_board"),
        "boards.wheel.board": ("WheelBoard", "wheel_board"),
        "boards.time_machine.explorer": ("Explorer", "explore"),
        "boards.knows.board": ("KnowsBoard", "knows_board"),
        "boards.lanes.board": ("LanesBoard", "lanes_board"),
        "boards.leases.board": ("LeaseBoard", "lease_board"),
        "boards.log_xray.board": ("LogXray", "log_xray"),
        "boards.long_poll.scope": ("LongPollScope", "long_poll_scope"),
        "boards.offset_strip": ("OffsetStripBoard", "offset_strip"),
        "boards.retry_clock.board": ("RetryClock", "retry_clock"),
        "boards.time_machine.stepper": ("Stepper",),
        "boards.tag_trap.board": ("TagTrapBoard", "tag_trap_board"),
    },
)
