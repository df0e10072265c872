"""`mqlab cat`, `mqlab inspect`, `mqlab recover`: a store directory from the command line.

Mirrors: kcat, and dumpCompactionLog and the queryMsg verbs of mqadmin. Lab 01 explains the columns.

    mqlab cat store --topic orders --count -3     the last three messages of a topic
    mqlab inspect store --json                    bounds, blanks, queues, index, checkpoint, problems; never writes
    mqlab recover store --json                    the same after the recovery a broker would do, and what that changed
    exit code  0 no problem   1 damage was found   2 not a store, or a wrong command line

A store that another process has open can be inspected, but not recovered.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mqlab.cli.message_format import Printer, as_json, as_line, compile_format, json_line
from mqlab.errors import UsageError
from mqlab.lab.inspector.inspector import SMALL_LOG_BYTES, StoreInspector
from mqlab.rocketmq.store.reading.deep_check import Problem
from mqlab.rocketmq.wire.body import camel_case

DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
PARTS = ("commitlog", "consumequeue", "index", "checkpoint", "config")


def open_inspector(directory: Path) -> StoreInspector:
    """An inspector of a store directory. UsageError if nothing in the directory belongs to a store."""
    if not any((directory / part).exists() for part in PARTS):
        raise UsageError(
            f"{directory} is not a store: it has none of {', '.join(PARTS)}",
            hint="give the storePathRootDir of a broker, or the store folder in the directory of a Lab",
        )
    return StoreInspector(directory)


def say(text: str) -> None:
    """Print a message for people on stderr."""
    click.echo(text, err=True)


def put_out(line: bytes) -> None:
    """Print a result on stdout, in UTF-8 whatever the terminal's encoding is."""
    click.echo(line, nl=False)


@click.command(epilog="Example:  mqlab cat store --topic orders -f '%o %k %s\\n'")
@click.argument("directory", type=DIRECTORY)
@click.option(
    "--json", "as_lines_of_json", is_flag=True, help="Print one JSON object per line, with every field as stored."
)
@click.option(
    "-f", "--format", "text", help="Print each message in this format, with kcat's tokens: %t %p %o %k %s %T %h ..."
)
@click.option("--topic", help="Print only messages of this topic.")
@click.option("--queue", type=int, help="Print only messages of this queue of the topic.")
@click.option("--key", help="Print only messages with this key or unique key.")
@click.option(
    "--from", "from_ms", type=int, help="Print only messages stored at this time or later, in ms since the epoch."
)
@click.option("--to", "to_ms", type=int, help="Print only messages stored at this time or earlier.")
@click.option("--offset", type=int, help="Start at this offset of the queue.")
@click.option("--count", type=int, help="Print at most this many messages; a negative number prints the last ones.")
def cat(
    directory: Path,
    as_lines_of_json: bool,
    text: str | None,
    topic: str | None,
    queue: int | None,
    key: str | None,
    from_ms: int | None,
    to_ms: int | None,
    offset: int | None,
    count: int | None,
) -> None:
    """Print the messages of the store in DIRECTORY in physical order, one per line. Never writes into it.

    Damaged places are skipped and reported on stderr; the exit code is 1 then.
    """
    # 1. Choose how a message is printed, before the store is opened.
    if as_lines_of_json and text is not None:
        raise UsageError("--json and --format cannot be used together", hint="choose one")
    printer: Printer = as_json if as_lines_of_json else as_line if text is None else compile_format(text)
    # 2. Print each message as it is read: a store may be larger than memory.
    store = open_inspector(directory)
    printed = 0
    for piece in store.pieces(topic, queue, key, from_ms=from_ms, to_ms=to_ms, count=count, offset=offset):
        put_out(printer(piece))
        printed += 1
    # 3. An empty result is often a misspelt topic, so list the topics that exist.
    if not printed:
        say("no message" + (f"; topics: {', '.join(store.topics()) or 'none'}" if topic not in store.topics() else ""))
    _end(store.problems())


@click.command(epilog="Example:  mqlab inspect store --json | jq .problems")
@click.argument("directory", type=DIRECTORY)
@click.option("--json", "as_one_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--deep/--quick",
    default=None,
    help=f"Check every unit, or only bounds and ends. Default: deep for logs of up to {SMALL_LOG_BYTES >> 20} MiB.",
)
def inspect(directory: Path, as_one_json: bool, deep: bool | None) -> None:
    """Summarise the store in DIRECTORY: offsets, queues, index files, checkpoint and problems. Never writes into it.

    The exit code is 1 if there are problems.
    """
    store = open_inspector(directory)
    problems = store.problems(deep=deep)
    summary = summary_of(store, problems, deep)
    if as_one_json:
        put_out(json_line(summary))
    else:
        _print_summary(summary)
    _end(problems, already_shown=not as_one_json)


@click.command(epilog="Example:  mqlab recover store --json")
@click.argument("directory", type=DIRECTORY)
@click.option("--json", "as_one_json", is_flag=True, help="Print one JSON object.")
def recover(directory: Path, as_one_json: bool) -> None:
    """Open the store in DIRECTORY, recover it as a broker does when it starts, and show what was cut and rebuilt.

    The directory is changed. File sizes are those of its files. The command fails while another process uses it.
    """
    from mqlab.rocketmq.store import MessageStore

    # 1. Opening a MessageStore creates files, so make sure first that this is a store.
    open_inspector(directory).close()
    # 2. Recover and close it as a broker does, then look at the result with the inspector.
    with MessageStore.open(str(directory)) as opened:
        report = opened.recovery_report
    store = open_inspector(directory)
    problems = store.problems()
    summary = {**summary_of(store, problems, None), "recovery": {camel_case(k): v for k, v in asdict(report).items()}}
    if as_one_json:
        put_out(json_line(summary))
    else:
        put_out(f"{report!r}\n".encode())
        _print_summary(summary)
    _end(problems, already_shown=not as_one_json)


def summary_of(store: StoreInspector, problems: list[Problem], deep: bool | None) -> dict[str, Any]:
    """The result of ``inspect`` and ``recover``, as plain values under RocketMQ's names."""
    checkpoint = store.checkpoint()
    end = store.max_physical_offset
    return {
        "directory": store.directory,
        "abort": store.is_open,
        "minPhysicalOffset": store.min_physical_offset,
        "maxPhysicalOffset": end,
        # Not below 0: when the log has lost its end, the queues are ahead of it.
        "dispatchBehindBytes": max(0, end - store.dispatched_physical_offset),
        "blanks": [
            {"physicalOffset": physical_offset, "size": size} for physical_offset, size in store.blanks(deep=deep)
        ],
        "queues": [
            {"topic": q.topic, "queueId": q.queue_id, "minOffset": q.min_offset, "maxOffset": q.max_offset}
            for q in store.queues()
        ],
        "index": [{camel_case(name): value for name, value in asdict(file).items()} for file in store.index_files()],
        "checkpoint": None if checkpoint is None else {_CHECKPOINT_NAMES[n]: value for n, value in checkpoint.items()},
        "sizes": {camel_case(name): value for name, value in asdict(store.sizes()).items()},
        "timer": _timer_of(store),
        "otherParts": store.other_parts(),
        "problems": [{camel_case(name): value for name, value in asdict(problem).items()} for problem in problems],
    }


def _timer_of(store: StoreInspector) -> dict[str, Any] | None:
    """The timer wheel of a store; None for a store that never had a timed message."""
    units, checkpoint = store.timer_units(), store.timer_checkpoint()
    if not units and checkpoint is None:
        return None
    numbers = None if checkpoint is None else {camel_case(name): value for name, value in checkpoint.items()}
    return {"units": len(units), "slots": len(store.timer_slots()), "checkpoint": numbers}


_CHECKPOINT_NAMES = {
    "physic_msg_timestamp": "physicMsgTimestamp",
    "logics_msg_timestamp": "logicsMsgTimestamp",
    "index_msg_timestamp": "indexMsgTimestamp",
    "master_flushed_offset": "masterFlushedOffset",
    "confirm_physical_offset": "confirmPhyOffset",
}


def _print_summary(summary: dict[str, Any]) -> None:
    from mqlab.lab.views.table import Table

    state = "open, or its process was killed (abort is there)" if summary["abort"] else "closed"
    lines = [
        f"store       {summary['directory']}, {state}",
        f"commit log  {summary['minPhysicalOffset']}..{summary['maxPhysicalOffset']}, "
        f"{summary['dispatchBehindBytes']} bytes not dispatched, {len(summary['blanks'])} full files",
        f"checkpoint  {summary['checkpoint']}",
        f"timer       {summary['timer'] or 'never used'}",
        f"not read    {', '.join(summary['otherParts']) or 'nothing'}",
        "",
        str(Table(summary["queues"], title="queues")),
        "",
        str(Table(summary["index"], title="index")),
        "",
        "problems: none" if not summary["problems"] else "problems",
        *map(_problem_line, summary["problems"]),
    ]
    put_out("\n".join(lines).encode("utf-8", "replace") + b"\n")


def _problem_line(problem: dict[str, Any]) -> str:
    """A problem in full: a table would cut its text."""
    where = "" if problem["physicalOffset"] is None else f" at {problem['physicalOffset']}"
    return f"  {problem['kind']}: {problem['file']}{where}: {problem['text']}"


def _end(problems: list[Problem], *, already_shown: bool = False) -> None:
    if problems:
        for problem in problems if not already_shown else []:
            say(f"problem: {problem}")
        raise click.exceptions.Exit(1)
