"""`mqlab sim`: random work and random faults over clusters, and whether every promise was kept.

RocketMQ has no such tool in its repository; openchaos does the like to a real cluster.

    mqlab sim --seeds 1000              one run per seed
    mqlab sim --seed 17                 this run alone
    mqlab sim --replay sim-17.json      a kept plan, again; --look opens it in the time machine
    mqlab sim --mine --seeds 100        on your own broker, the parts in mybroker

    exit code  0 every promise was kept   1 one was broken   2 the command line is wrong   130 interrupted
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mqlab.counts import counted
from mqlab.errors import UsageError
from mqlab.extras import need

if TYPE_CHECKING:
    from mqlab.lab.simulation import Outcome, RunPlan

SHOWN = 8


@click.command(short_help="Try random faults on random work in simulated clusters.")
@click.option("--seeds", type=click.IntRange(1), help="How many seeds to run. Default: 100.")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first of them.")
@click.option("--seed", type=click.IntRange(0), help="Run this seed alone.")
@click.option("--replay", type=click.Path(path_type=Path), help="Run the plan in this file.")
@click.option("--look", is_flag=True, help="Open the run of --seed or --replay in the time machine, in the browser.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path(), help="Where the plans of failing seeds go. Default: here."
)
@click.option("--mine", is_flag=True, help="Run on your own broker, the parts in the folder mybroker here.")
@click.option("--no-shrink", is_flag=True, help="Keep the plan of a failing seed as it was drawn.")
def sim(
    seeds: int | None,
    first: int,
    seed: int | None,
    replay: Path | None,
    look: bool,
    out: Path,
    mine: bool,
    no_shrink: bool,
) -> None:
    """Run random work and random faults over simulated clusters and check that every promise was kept.

    A failing seed is made small and written to a file, which --replay runs again.

    \b
    Examples:  mqlab sim --seeds 1000
               mqlab sim --replay sim-17.json --look
    """
    from mqlab.lab.parts import FOLDER, parts_in
    from mqlab.lab.simulation import RunPlan

    if sum(option is not None for option in (seeds, seed, replay)) > 1:
        raise UsageError("--seeds, --seed and --replay contradict each other", hint="choose one")
    if look and seed is None and replay is None:
        raise UsageError("--look needs one run", hint="mqlab sim --seed 17 --look")
    if not out.is_dir():
        raise UsageError(f"{out} is not a directory", hint="--out names the directory for the plans of failing seeds")
    if mine:
        parts_in(Path(FOLDER))  # without a part every seed would fail, for that reason
    if replay is not None or seed is not None:
        plan = RunPlan.load(replay) if replay is not None else _drawn(seed or 0, mine=mine)
        if look:
            _look(plan)
            return
        _one(plan)
        return
    _many(range(first, first + (seeds or 100)), out, shrinking=not no_shrink, mine=mine)


def _drawn(seed: int, *, mine: bool) -> RunPlan:
    """The plan of a seed, for mqlab's own cluster or for the learner's broker."""
    from mqlab.lab.simulation import draw, on_own_parts

    return on_own_parts(draw(seed)) if mine else draw(seed)


def _one(plan: RunPlan) -> None:
    """Run one plan and print what it was and what came of it."""
    from mqlab.lab.simulation import run

    click.echo(plan.as_json(), nl=False)
    outcome = run(plan)
    _report(outcome)
    if outcome.wrong:
        raise click.exceptions.Exit(1)


def _many(numbers: range, out: Path, *, shrinking: bool, mine: bool) -> None:
    need("lab")
    from tqdm import tqdm

    from mqlab.lab.simulation import run

    began, done, kinds, failed, sent = time.monotonic(), 0, Counter[str](), list[int](), 0
    interrupted = False
    bar = tqdm(total=len(numbers), unit=" seeds", disable=None, leave=False)
    try:
        with bar:
            for number in numbers:
                outcome = run(_drawn(number, mine=mine))
                done, sent = done + 1, sent + len(outcome.notes.sent)
                bar.update()
                if outcome.wrong:
                    failed.append(number)
                    kinds.update({wrong.kind for wrong in outcome.wrong})
                    bar.clear()
                    _keep(outcome, out / f"sim-{number}.json", shrinking)
    except KeyboardInterrupt:
        interrupted = True
    took = time.monotonic() - began
    acknowledged, broke = counted(sent, "messages acknowledged"), counted(len(failed), "seeds")
    click.echo(f"{counted(done, 'seeds')} in {took:.0f} s, {acknowledged}: {broke} broke a promise")
    for kind, count in kinds.most_common():
        click.echo(f"  {kind:9} in {counted(count, 'seeds')}")
    if interrupted:
        click.echo(f"mqlab: stopped; --first {numbers.start + done} continues from here", err=True)
        raise click.exceptions.Exit(130)
    if failed:
        raise click.exceptions.Exit(1)


def _keep(outcome: Outcome, path: Path, shrinking: bool) -> None:
    """Make a failing plan small, write it, and say how to see it again."""
    from mqlab.lab.simulation import run, shrink

    plan, kind = outcome.plan, outcome.wrong[0].kind
    _report(outcome)
    if shrinking:
        plan = shrink(plan, lambda candidate: kind in {wrong.kind for wrong in run(candidate).wrong})
    plan.save(path)
    before = len(outcome.plan.events)
    enough = counted(len(plan.events), f"of its {before} events are enough", f"of its {before} events is enough")
    click.echo(f"  {enough}. Again:  mqlab sim --replay {path}\n")


def _report(outcome: Outcome) -> None:
    if not outcome.wrong:
        click.echo(
            f"seed {outcome.plan.seed}: every promise was kept ({len(outcome.notes.sent)} acknowledged messages)"
        )
        return
    click.echo(f"seed {outcome.plan.seed}: {counted(len(outcome.wrong), 'promises broken')}")
    for wrong in outcome.wrong[:SHOWN]:
        click.echo(f"  {wrong}")
    if len(outcome.wrong) > SHOWN:
        click.echo(f"  … and {len(outcome.wrong) - SHOWN} more")


def _look(plan: RunPlan) -> None:
    """Serve the run as a time machine until Ctrl-C."""
    from mqlab.cli.console import serve_board
    from mqlab.course.widgets.boards.time_machine.explorer import explore

    serve_board(explore(plan.story, **plan.settings), f"Simulation of seed {plan.seed}")
