"""The command line: one verb per job; each is imported only when it is called.

Like the sh files of RocketMQ's bin folder (mqadmin, mqbroker). The README shows the verbs.

    mqlab cat DIR --json | head        results go to stdout, messages for people to stderr
    exit code  0 done    1 something is wrong with what was asked about    2 the command line is wrong

Each verb is a thin module of this package over a part of mqlab.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

import mqlab
from mqlab.errors import MqlabError, UsageError

VERBS = {  # verb -> where its click command is, and its summary in the list of verbs
    "lab": ("mqlab.cli.lab:lab", "Open JupyterLab on the labs."),
    "doctor": ("mqlab.cli.doctor:doctor", "Show what is installed and what each missing part switches off."),
    "cat": ("mqlab.cli.store:cat", "Print a store's messages in physical order."),
    "inspect": ("mqlab.cli.store:inspect", "Summarise a store without changing it."),
    "recover": ("mqlab.cli.store:recover", "Open a store as a broker does, recover it and close it."),
    "admin": ("mqlab.cli.admin:admin", "Show what RocketMQ's mqadmin shows, for a store or a Lab's directory."),
    "console": (
        "mqlab.cli.console:console",
        "Open RocketMQ Dashboard's pages over a store or a cluster, in the browser.",
    ),
    "serve": ("mqlab.cli.serve:serve", "Run a name server and brokers for real RocketMQ clients."),
    "traffic": ("mqlab.cli.traffic:traffic", "Generate a day of traffic, from a seed, as store directories."),
    "incident": ("mqlab.cli.incident:incident", "Make a bad day for one student, or tell its truth."),
    "sim": ("mqlab.cli.sim:sim", "Try random faults on random work in simulated clusters."),
    "progress": ("mqlab.cli.progress:progress", "Show how far you are in the labs."),
    "check": ("mqlab.cli.own_work:check", "Run the public checks on your own notebook."),
    "start": ("mqlab.cli.own_work:start", "Start a lab in a dated copy of its notebook."),
    "restore": ("mqlab.cli.own_work:restore", "Make a fresh copy of a lab next to your work."),
    "grade": ("mqlab.cli.grading:grade", "Grade a class; answers run in a sandbox."),
    "override": ("mqlab.cli.grading:override", "Give a student different points for an exercise, with a comment."),
    "league": ("mqlab.cli.grading:league", "Compare the brokers that a class has written in lab 16."),
    "spark": ("mqlab.cli.spark:spark", "Read stores with Spark: write tables and a report."),
    "site": ("mqlab.cli.site:site", "Write the course as a static web site, labs that run in the browser included."),
    "slides": ("mqlab.cli.slides:slides", "Write a lab's pictures and questions as slides."),
    "release": ("mqlab.cli.grading:release", "Pack the files for students into one archive."),
}


class LazyVerbs(click.Group):
    """A group that knows its verbs by name and imports the one that is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The verb's command, imported now."""
        if name not in VERBS:
            return None
        module, _, attribute = VERBS[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, from the table: listing them must not import them."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, summary) for verb, (_, summary) in VERBS.items()])

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but the error for an unknown verb lists the existing ones."""
        if arguments and arguments[0] not in VERBS and not arguments[0].startswith("-"):
            context.fail(f"unknown command {arguments[0]!r}; the commands are {', '.join(VERBS)}")
        return super().resolve_command(context, arguments)

    def invoke(self, context: click.Context) -> Any:
        """Run the verb; an MqlabError becomes its text on stderr and an exit code."""
        try:
            return super().invoke(context)
        except MqlabError as error:
            click.echo("\n".join([f"mqlab: {error}", *getattr(error, "__notes__", ())]), err=True)
            raise click.exceptions.Exit(2 if isinstance(error, UsageError) else 1) from error
        except BrokenPipeError:  # the reader of our output has seen enough (`| head`)
            sys.stderr.close()
            raise click.exceptions.Exit(0) from None


@click.group(cls=LazyVerbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(mqlab.__version__, prog_name="mqlab", message="%(prog)s %(version)s")
def main() -> None:
    """A small Apache RocketMQ in Python: a lab that can be stopped, stepped, replayed and broken.

    Example:  mqlab doctor
    """
