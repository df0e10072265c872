"""`mqlab traffic`: a day of an order platform written as store directories of several brokers.

RocketMQ has no such tool: its benchmark producer needs running brokers. Lab 10 reads such a day.

    mqlab traffic --messages 10_000_000 --brokers 3 --seed 7 --out day
    day/broker-a  day/broker-b  day/broker-c     stores        day/traffic.json    what was asked, counts
    day.truth.json                               the incidents, for instructors

    after Ctrl-C or a crash, the same command continues with the first store that is not complete
    exit code  0 done   1 the disk is too small   2 the command line is wrong   130 interrupted

Sizes of files and other numbers of the model have no option of their own: use --set NAME=VALUE.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mqlab.cli.new_file import NewFile
from mqlab.errors import UsageError
from mqlab.extras import need

if TYPE_CHECKING:
    from mqlab.data.traffic.writing.run import RunBrokers, TrafficSummary


class WholeNumber(click.ParamType):  # type: ignore[type-arg]
    """A whole number; underscores between its digits are allowed."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or click's own complaint."""
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number such as 10_000_000", param, ctx)


@click.command(epilog="Example:  mqlab traffic --messages 10_000_000 --brokers 3 --seed 7 --out day")
@click.option(
    "--messages", type=WholeNumber(), required=True, help="How many messages to store, at all brokers together."
)
@click.option(
    "--brokers", type=WholeNumber(), default=1, show_default=True, help="How many brokers; each has its own store."
)
@click.option(
    "--seed", type=WholeNumber(), default=7, show_default=True, help="The same seed always writes the same bytes."
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="The directory of the stores; created if needed."
)
@click.option("--truth", type=NewFile(), help="The file that lists the incidents. Default: OUT.truth.json")
@click.option(
    "--incident",
    "incidents",
    multiple=True,
    metavar="KIND",
    help="An incident or decoy of the day; repeatable. An unknown KIND lists them. Default: the seed chooses.",
)
@click.option("--no-incidents", is_flag=True, help="No incidents; single deliveries still fail.")
@click.option("--index", is_flag=True, help="Write the key index: about seven entries per message.")
@click.option("--reminders", is_flag=True, help="For each order also a delayed message, due after 30 minutes.")
@click.option("--invoices", is_flag=True, help="For each paid order also an invoice, sent in a transaction.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change a number of the traffic model; repeatable."
)
@click.option(
    "--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="How many stores to write in parallel."
)
@click.option("--spark", is_flag=True, help="Let Spark write the stores; its master is MQLAB_SPARK_MASTER.")
@click.option("--json", "as_one_json", is_flag=True, help="Print one JSON object.")
def traffic(
    messages: int,
    brokers: int,
    seed: int,
    out: Path,
    truth: Path | None,
    incidents: tuple[str, ...],
    no_incidents: bool,
    index: bool,
    reminders: bool,
    invoices: bool,
    settings: tuple[str, ...],
    workers: int,
    spark: bool,
    as_one_json: bool,
) -> None:
    """Write a day of traffic of an order platform as store directories, byte for byte as brokers write them.

    After an interruption, the same command continues. A directory with other files in it is not changed.
    """
    need("spark")
    from tqdm import tqdm

    from mqlab.data.traffic import write

    # 1. The model: its defaults, and what the options change.
    if incidents and no_incidents:
        raise UsageError("--incident and --no-incidents contradict each other", hint="choose one")
    changes = _numbers(settings)
    if incidents or no_incidents:
        changes["incidents"] = incidents
    # 2. Write the stores, with a progress bar on stderr if that is a terminal.
    bar = tqdm(total=messages, unit=" messages", unit_scale=True, disable=None, leave=False)
    try:
        with bar:
            summary = write(
                out,
                messages=messages,
                brokers=brokers,
                seed=seed,
                truth=truth,
                index=index,
                reminders=reminders,
                invoices=invoices,
                progress=bar.update,
                run=_runner(workers, spark),
                **changes,
            )
    except KeyboardInterrupt:
        click.echo(f"mqlab: stopped; the same command continues and writes what is missing in {out}", err=True)
        raise click.exceptions.Exit(130) from None
    _tell(summary, as_one_json)


def _runner(workers: int, spark: bool) -> RunBrokers | None:
    if spark and workers > 1:
        raise UsageError("--spark and --workers cannot be used together", hint="choose one")
    if spark:
        from mqlab.data.spark import session
        from mqlab.data.traffic.writing.runners import on_spark

        return on_spark(session())
    if workers > 1:
        from mqlab.data.traffic.writing.runners import in_processes

        return in_processes(workers)
    return None


def _numbers(settings: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE as fields of the traffic model. Raises UsageError."""
    from mqlab.data.traffic.model import ON_REQUEST

    changes: dict[str, Any] = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name in ("index", "incidents", *ON_REQUEST):
            raise UsageError(f"--set {setting}: {name} has an option of its own")
        try:
            changes[name] = text if name == "cluster" else int(text)
        except ValueError:
            raise UsageError(f"--set {setting}: {text!r} is not a number", hint="such as: customers=1_000") from None
    return changes


def _tell(summary: TrafficSummary, as_one_json: bool) -> None:
    if as_one_json:
        asked = summary.asked
        value = {
            "directory": str(summary.directory),
            "truth": str(summary.truth),
            "messages": asked.messages,
            "brokers": list(summary.stores),
            "seed": asked.seed,
            "topics": summary.topics,
            "logBytes": summary.log_bytes,
        }
        click.echo(json.dumps(value, ensure_ascii=False))
        return
    click.echo(repr(summary)[1:-1])
    width = max(len(topic) for topic in summary.topics)
    for topic, count in summary.topics.items():
        click.echo(f"  {topic:<{width}} {count:>12,}")
    click.echo(f"incidents: {summary.truth}")
