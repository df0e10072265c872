"""`mqlab spark run` and `mqlab spark report`: from stores to tables of facts, and from these to a page.

Mirrors: spark-submit, for one job that is always the same.

    mqlab spark run stores --out out                      every step, resumed where an earlier run stopped
    mqlab spark run stores --out out --from life          ... again from one step on
    mqlab spark run stores --out out --thresholds t.json  ... with other thresholds of the rules; --without suspicions
    mqlab spark run stores --out out --stream             follow stores that are being written, until Ctrl-C
    mqlab spark compact out                               few files of the many that a stream wrote
    mqlab spark report out --out report.html              the page; starts no Spark
    mqlab spark keep-offsets stores --out kept            every few minutes, for report --offsets-kept kept

On a cluster, all workers must see the stores and --out under the same paths.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from mqlab.cli.new_file import NewFile

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def spark() -> None:
    """Look at stores with Spark: run the pipeline, write the report.

    Example:  mqlab spark run stores --out out && mqlab spark report out --out report.html
    """


@spark.command(
    short_help="Make tables of the stores in a directory.",
    epilog="Example:  mqlab spark run stores --out out --master 'local[4]'",
)
@click.argument("directory", type=FOLDER)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder of the tables: new, empty, or of an earlier run.",
)
@click.option("--master", help="Spark's master. Default: MQLAB_SPARK_MASTER, else local[*].")
@click.option("--memory", help="Heap size of the driver; with a local master it does all the work. Default: 2g.")
@click.option(
    "--from",
    "start",
    metavar="STEP",
    help="Run this step and all later ones again; 'facts' stands for the small tables.",
)
@click.option(
    "--stream",
    is_flag=True,
    help="Follow the growing stores until Ctrl-C; only the tables of messages and trace are written.",
)
@click.option("--available-now", is_flag=True, help="With --stream: read what the stores hold now, then end.")
@click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Continue with a warning, here and in the report, when a log ends before its queues do.",
)
@click.option(
    "--thresholds",
    "limits",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A JSON file with thresholds of the rules: {"slow_times": 3}. The report shows all of them.',
)
@click.option(
    "--without", type=click.Choice(["suspicions"]), help="Leave the rules out: the tables, and no findings in them."
)
def run(
    directory: Path,
    out: Path,
    master: str | None,
    memory: str | None,
    start: str | None,
    stream: bool,
    available_now: bool,
    allow_data_loss: bool,
    limits: Path | None,
    without: str | None,
) -> None:
    """Make tables of messages, deliveries, lives and facts of the store in DIRECTORY, or of all stores in it.

    A step's table is complete or absent. After an interruption, the same command continues where it stopped.
    """
    from mqlab.data.spark import session
    from mqlab.data.spark.pipeline import Thresholds, run, snapshot, step_named
    from mqlab.errors import UsageError

    # 1. Check everything that can be checked without a JVM, which takes seconds to start.
    if stream and start:
        raise UsageError("--from and --stream cannot be used together", hint="leave one out")
    if available_now and not stream:
        raise UsageError("--available-now needs --stream", hint="give --stream too")
    if stream and (limits or without):
        raise UsageError("--stream applies no rules", hint="leave --thresholds and --without out")
    if start:
        step_named(start)
    thresholds = Thresholds.from_file(limits) if limits else None
    if not allow_data_loss:
        snapshot(directory)  # before a JVM starts
    # 2. Start Spark, or take the session that is running.
    settings: dict[str, Any] = {"spark.driver.memory": memory} if memory else {}
    started = session(master, app_name="mqlab spark run", **settings)
    # 3. A stream follows the stores until it is stopped.
    if stream:
        _follow(started, directory, out, available_now, fail_on_data_loss=not allow_data_loss)
        return
    # 4. Otherwise run the steps, and report each when it begins and when its table is complete.
    logging.getLogger().addFilter(_not_of_interrupts)
    try:
        done = run(
            directory,
            out,
            spark=started,
            start=start,
            tell=_tell,
            fail_on_data_loss=not allow_data_loss,
            thresholds=thresholds,
            without=(without,) if without else (),
        )
    except KeyboardInterrupt:
        click.echo(f"\nstopped; finished steps are kept in {out}, and the same command continues from there", err=True)
        raise click.exceptions.Exit(130) from None
    finally:
        logging.getLogger().removeFilter(_not_of_interrupts)
    seconds = sum(numbers["seconds"] for numbers in done.values())
    click.echo(f"{len(done)} tables in {out}, {seconds:.0f} s in all; next:  mqlab spark report {out}", err=True)


def _tell(step: str, numbers: dict[str, float]) -> None:
    """Say that a step begins, or what it has made."""
    from mqlab.data.spark.pipeline import STEPS

    if numbers:
        click.echo(f"{numbers['rows']:,} rows, {numbers['seconds']:.1f} s", err=True)
    else:
        click.echo(f"[{list(STEPS).index(step) + 1}/{len(STEPS)}] {step}: ", nl=False, err=True)


def _follow(started: Any, directory: Path, out: Path, available_now: bool, *, fail_on_data_loss: bool) -> None:
    """Follow the stores and report each batch."""
    from mqlab.data.spark.pipeline import Follow

    follow = Follow(directory, out, spark=started, available_now=available_now, fail_on_data_loss=fail_on_data_loss)
    click.echo(f"following {directory}; Ctrl-C ends it" if not available_now else f"reading {directory}", err=True)
    follow.wait(tell=lambda name, rows: click.echo(f"{name}: {rows:,} rows", err=True))
    click.echo(f"next:  mqlab spark run {directory} --out {out}", err=True)


def _not_of_interrupts(record: logging.LogRecord) -> bool:
    """Suppress what py4j logs on Ctrl-C: a page of text about an intended interruption."""
    return "while sending command" not in str(record.msg)


@spark.command(
    short_help="Write the report on a run as one HTML file.",
    epilog="Example:  mqlab spark report out --out report.html",
)
@click.argument("directory", type=FOLDER)
@click.option(
    "--out",
    default="report.html",
    show_default=True,
    type=NewFile(),
    help="The HTML file to write.",
)
@click.option("--beside", type=FOLDER, help="The tables of another day, for a section that compares the two.")
@click.option(
    "--offsets-kept", type=FOLDER, help="What 'mqlab spark keep-offsets' kept: a section about lag over time."
)
def report(directory: Path, out: Path, beside: Path | None, offsets_kept: Path | None) -> None:
    """Write the report on the run whose tables are in DIRECTORY: one HTML file that opens in any browser."""
    from mqlab.data.spark.report import write_report

    click.echo(write_report(directory, out, beside, offsets_kept))


@spark.command(
    "keep-offsets",
    short_help="Copy the present offsets, for a report about lag over time.",
    epilog="Example:  mqlab spark keep-offsets stores --out kept",
)
@click.argument("directory", type=FOLDER)
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder to keep them in."
)
def keep_offsets(directory: Path, out: Path) -> None:
    """Copy the present consumerOffset.json of each store in DIRECTORY, for a report about lag over time.

    To be called every few minutes, by cron for instance; starts no Spark.
    """
    from mqlab.data.spark.report import keep_offsets

    for path in keep_offsets(directory, out):
        click.echo(path)


@spark.command(short_help="Write a stream's tables again, in few files.", epilog="Example:  mqlab spark compact out")
@click.argument("directory", type=FOLDER)
@click.option("--master", help="Spark's master. Default: MQLAB_SPARK_MASTER, else local[*].")
def compact(directory: Path, master: str | None) -> None:
    """Write the tables of a stream in DIRECTORY again, in few files; end the stream first, and restart it later.

    The rows stay the same. An interruption leaves each table as it was, or complete.
    """
    from mqlab.data.spark import session
    from mqlab.data.spark.pipeline import compact

    for name, (before, after) in compact(directory, spark=session(master, app_name="mqlab spark compact")).items():
        click.echo(f"{name}: {before:,} files before, {after:,} now", err=True)
