"""`mqlab admin`: mqadmin's verbs, with its names and options, on a store, a Lab's directory or a cluster.

Mirrors: mqadmin.

    mqlab admin consumerProgress DIR -g billing     DIR: a broker's store, or lab.directory with its stores
    mqlab admin resetOffsetByTime DIR -t orders -g billing -s 0      always a dry run
    mqlab admin consumerProgress -n 127.0.0.1:9876                   a cluster, by its name server
    mqlab admin resetOffsetByTime -n HOST:PORT -t … -g … -s …        shows what would happen, asks, and does it

A Lab borrows the files of DIR: nothing is copied, and nothing in DIR changes. Its brokers start, recover and answer;
consumers are offline. When a configuration file of DIR cannot be read and its backup counts, stderr says so, and the
exit code is 1. The verbs of CHANGES change a cluster: each asks first, unless --yes is given.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mqlab.cli.admin_options import OPTIONS, YES
from mqlab.cli.admin_verbs import CHANGES, DONE_AFTER_A_LOOK, VERBS, Verb
from mqlab.cli.message_format import json_line
from mqlab.cli.store import put_out
from mqlab.errors import UsageError
from mqlab.rocketmq.admin.clusters import KeyValue
from mqlab.rocketmq.answers import Rows, Shown, plain

if TYPE_CHECKING:
    from mqlab.rocketmq.admin import Admin


@click.group(epilog="Example:  mqlab admin consumerProgress run -g billing")
def admin() -> None:
    """Show what RocketMQ's mqadmin shows, for a store directory, a Lab's directory or a cluster.

    Nothing in a directory is changed. What changes a cluster asks first.
    """


def _settings_rows(title: str, settings: Any) -> Rows[KeyValue]:
    """The fields of one value, one per line."""
    values = [(field.name, getattr(settings, field.name)) for field in dataclasses.fields(settings)]
    return Rows([KeyValue(name, "" if value is None else str(value)) for name, value in values], title)


def say(message: str) -> None:
    """A line for people: results alone go to stdout."""
    click.echo(f"mqlab: {message}", err=True)


def _show(name: str, answer: Any, as_one_json: bool) -> None:
    if answer is None:
        say(f"{name}: done")
    elif as_one_json:
        put_out(json_line(answer.to_value() if isinstance(answer, Shown) else plain(answer)))
    else:
        shown = answer if isinstance(answer, Shown) else _settings_rows(name, answer)
        is_table = type(shown).__str__ is Shown.__str__
        put_out(f"{shown.whole_text() if is_table else shown}\n".encode("utf-8", "replace"))


@contextmanager
def _asked_of(directory: Path | None, namesrv: str | None) -> Iterator[Admin]:
    """The tool over a borrowed directory, or over the cluster of a name server."""
    if (directory is None) == (namesrv is None):
        raise UsageError("say what to ask: a directory, or a cluster with -n HOST:PORT, and not both")
    if namesrv is not None:
        from mqlab.cluster.connected import connect_from_environment

        with connect_from_environment(namesrv) as cluster:
            yield cluster.operator
        return
    from mqlab.lab.world.borrowed_stores import damage_of, open_stores

    assert directory is not None
    if not directory.is_dir():
        hint = f"for a cluster write -n {directory}" if ":" in str(directory) else "give a store or a Lab's directory"
        raise UsageError(f"{directory} is not a directory", hint=hint)
    with tempfile.TemporaryDirectory(prefix="mqlab-") as scratch, open_stores(directory, scratch, say) as lab:
        yield lab.admin
        if damage_of(lab):  # what was shown may be old
            raise click.exceptions.Exit(1)


def _by_name(tool: Admin, asked: dict[str, Any]) -> dict[str, Any]:
    """What a verb is asked, with the name of a broker that was given by its address, as mqadmin takes it."""
    broker = asked.get("broker")
    if broker is None or ":" not in broker:  # no broker's name has a colon
        return asked
    names = {address: name for name, address in tool.brokers()}
    if broker not in names:
        masters = ", ".join(f"{name} at {address}" for address, name in names.items())
        raise UsageError(f"no master listens at {broker}", hint=f"there are {masters}")
    return {**asked, "broker": names[broker]}


def _command(name: str, verb: Verb) -> click.Command:
    """A verb that shows something; in a cluster some of them then ask, and do what they showed."""
    then_do = DONE_AFTER_A_LOOK.get(name)

    def run(directory: Path | None, namesrv: str | None, as_one_json: bool, **asked: Any) -> None:
        yes, only_look = asked.pop("yes", False), asked.pop("dry_run", False)
        with _asked_of(directory, namesrv) as tool:
            asked = _by_name(tool, asked)
            _show(name, verb.answer(tool, **asked), as_one_json)
            if then_do is not None and namesrv is not None and not only_look:
                _must_be_wanted(name, namesrv, yes)
                then_do(tool, **asked)
                say(f"{name}: done")

    # Decorators are applied from the bottom up, so the last option comes first.
    for option in reversed(verb.options):
        run = OPTIONS[option](run)
    if then_do is not None:
        run = click.option("--dry-run", is_flag=True, help="Only show what would happen in the cluster.")(YES(run))
    run = click.option("--json", "as_one_json", is_flag=True, help="Print one JSON value.")(run)
    run = click.option("-n", "--namesrv", metavar="HOST:PORT", help="Ask the cluster of this name server.")(run)
    run = click.argument("directory", type=click.Path(path_type=Path), required=False)(run)
    example = f"Example:  mqlab admin {name} run {verb.example}".rstrip()
    return click.command(name=name, help=verb.summary, short_help=verb.summary, epilog=example)(run)


def _changing_command(name: str, verb: Verb) -> click.Command:
    """A verb that changes a cluster, after a question."""

    def run(namesrv: str, yes: bool, **asked: Any) -> None:
        from mqlab.cluster.connected import connect_from_environment

        with connect_from_environment(namesrv) as cluster:
            _must_be_wanted(name, namesrv, yes)
            _show(name, verb.answer(cluster.operator, **_by_name(cluster.operator, asked)), as_one_json=False)

    for option in reversed(verb.options):
        run = OPTIONS[option](run)
    run = click.option("-n", "--namesrv", metavar="HOST:PORT", required=True, help="The cluster's name server.")(
        YES(run)
    )
    summary = f"{verb.summary} For a cluster."
    example = f"Example:  mqlab admin {name} -n 127.0.0.1:9876 {verb.example}".rstrip()
    return click.command(name=name, help=summary, short_help=summary, epilog=example)(run)


def _must_be_wanted(name: str, namesrv: str, yes: bool) -> None:
    """Ask before a cluster is changed; without an answer nothing is."""
    if not yes and not click.confirm(f"{name} changes the cluster of {namesrv}. Do it?", err=True):
        say("nothing was changed")
        raise click.exceptions.Exit(1)


for _name, _verb in VERBS.items():
    admin.add_command(_command(_name, _verb))
for _name, _verb in CHANGES.items():
    admin.add_command(_changing_command(_name, _verb))
