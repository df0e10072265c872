"""`mqlab incident`: a bad day for one student, made from the course's secret; its truth for the holder of the secret.

RocketMQ has no such tool. Lab 13 is about such days.

    mqlab incident --for anna --secret FILE --out anna          stores, calendar.json, incident.json; nothing tells
                                                                what went wrong
    mqlab incident --for anna --secret FILE --truth             the incidents and whom they harmed, as JSON

    after Ctrl-C or a crash, the same command continues with the first store that is not complete
    exit code  0 done   1 the disk is too small   2 the command line is wrong   130 interrupted

The same name, secret and numbers always give the same day, so a roster and one file are all that has to be kept.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from mqlab.cli.traffic import WholeNumber
from mqlab.errors import UsageError
from mqlab.extras import need


@click.command(epilog="Example:  mqlab incident --for anna --secret course.secret --out anna")
@click.option("--for", "student", required=True, metavar="NAME", help="The student, as on the roster.")
@click.option(
    "--secret",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The course's secret: a file of at least 16 bytes that no student sees.",
)
@click.option("--out", type=click.Path(path_type=Path), help="The directory of the stores; created if needed.")
@click.option("--truth", is_flag=True, help="Print what went wrong and whom it harmed, as JSON; write no store.")
@click.option(
    "--messages",
    type=WholeNumber(),
    default=300_000,
    show_default=True,
    help="How many messages all brokers store together.",
)
@click.option(
    "--brokers", type=WholeNumber(), default=3, show_default=True, help="How many brokers; each has its own store."
)
def incident(student: str, secret: Path, out: Path | None, truth: bool, messages: int, brokers: int) -> None:
    """Write the stores of a day on which three things went wrong, different for each student."""
    need("spark")
    from tqdm import tqdm

    from mqlab.data.traffic import capstone
    from mqlab.data.traffic.trouble.capstone import read_secret

    if truth == (out is not None):
        raise UsageError("give either --out or --truth", hint="--out DIR writes the day, --truth tells what happened")
    day = capstone(student, read_secret(secret), messages=messages, brokers=brokers)
    if out is None:
        click.echo(json.dumps(day.truth(), ensure_ascii=False, indent=1))
        return
    bar = tqdm(total=messages, unit=" messages", unit_scale=True, disable=None, leave=False)
    try:
        with bar:
            stores = day.write(out, progress=bar.update)
    except KeyboardInterrupt:
        click.echo(f"mqlab: stopped; the same command continues and writes what is missing in {out}", err=True)
        raise click.exceptions.Exit(130) from None
    click.echo(f"{out}: {messages:,} messages in {', '.join(stores)}, and calendar.json")
