"""`mqlab grade`, `check`, `start`, `restore`, `release`: how a lab goes from the teacher to the student and back.

The instructor's guide (docs/instructors.md) explains all five.

    release ─▶ zip ─▶ start ─▶ work ─▶ check ─▶ hand in ─▶ grade ─▶ grades.csv, feedback, heat map

These verbs call mqlab.course.grading and print; the judging is there.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from mqlab.cli.new_file import NewFile
from mqlab.errors import UsageError

WIDTH = 24
Folder = click.Path(path_type=Path, file_okay=False)


def course_option(command: Any) -> Any:
    """The option --course, for a course with labs of its own."""
    return click.option("--course", type=Folder, help="A folder with labs/; default: mqlab's own.")(command)


@click.command()
@click.argument("submissions", type=click.Path(path_type=Path))
@click.option(
    "--lab",
    "labs",
    multiple=True,
    required=True,
    metavar="NN",
    help="A lab (01), one part of it (01a), or all. Repeatable.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder of the results.")
@click.option("--seed", help="The seed of the class's hidden cases. Default: a random one, kept in --out.")
@click.option("-j", "--jobs", type=click.IntRange(1, 256), help="Notebooks at a time. Default: one per processor.")
@click.option("--resume", is_flag=True, help="Keep existing records that are still valid.")
@click.option(
    "--show-hidden",
    type=click.Choice(["none", "name", "message", "full"]),
    default="message",
    show_default=True,
    help="What feedback shows of hidden cases.",
)
@click.option("--roster", type=click.Path(path_type=Path), help="A class list: all on it get a record.")
@click.option("--sheet", type=click.Path(path_type=Path), help="Moodle's worksheet or Canvas's export to fill.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=1),
    default=3_600.0,
    show_default=True,
    help="Seconds on the clock for each notebook.",
)
@click.option("--unsafe-no-sandbox", is_flag=True, help="No sandbox: answers can read and change your files.")
@click.option(
    "--secret",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also judge each student by the day that `mqlab incident` made (lab 13).",
)
@click.option(
    "--day",
    default="300_000/3",
    show_default=True,
    metavar="MESSAGES/BROKERS",
    help="What `mqlab incident` got: how large those days are.",
)
@click.option("--only-predictions", is_flag=True, help="Count what the class predicted, and judge nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per record.")
@course_option
def grade(
    submissions: Path,
    labs: tuple[str, ...],
    out: Path,
    seed: str | None,
    jobs: int | None,
    resume: bool,
    show_hidden: str,
    roster: Path | None,
    sheet: Path | None,
    time_limit: float,
    unsafe_no_sandbox: bool,
    secret: Path | None,
    day: str,
    only_predictions: bool,
    as_json: bool,
    course: Path | None,
) -> None:
    """Grade a folder of notebooks or of student folders; every submission gets a record.

    Exit code 0 if every submission has a record, whatever the scores.

    Example:  mqlab grade submissions --lab 01 --out grades --seed autumn -j 4
    """
    from mqlab.course.grading.reports import write_reports
    from mqlab.course.grading.reports.overrides import overridden
    from mqlab.course.grading.running.gradebook import Grader, GradingPlan
    from mqlab.course.grading.submissions.finding import find_submissions, read_roster
    from mqlab.course.material import course_folder

    # 1. Find out what is to be graded; nothing is written before this has succeeded.
    home = course_folder(course)
    chosen = _labs(home, labs)
    by_hand = _by_hand(out, chosen, sheet)
    handed_in = find_submissions(submissions, chosen, read_roster(roster) if roster else ())
    own = _own_days(secret, day, chosen)

    # 2. Try the sandbox. What the class predicted needs none, and is there before anything is judged.
    sandbox = None if only_predictions else _sandbox(home, submissions, out, unsafe_no_sandbox)
    histograms = _predicted(out, chosen, handed_in)
    if sandbox is None:
        return

    # 3. Judge one submission after another.
    workers = jobs or os.cpu_count() or 1
    plan = GradingPlan(home, out.absolute(), _seed(out, seed), sandbox, workers, resume, True, time_limit, own)
    records = _with_progress(Grader(plan, chosen), handed_in)

    # 4. Write the reports, from the records, the points given by hand, and attempt logs that were handed in.
    records, unused = overridden(records, by_hand)
    logged = _efforts(submissions, chosen)
    write_reports(out, records, seed=plan.seed, show_hidden=show_hidden, efforts=logged, histograms=histograms)
    if sheet is not None:
        _fill_sheet(sheet, records, out)
    _print_records(records, as_json)
    _say_where(out, unused)
    if len(records) < len(handed_in):
        sys.exit(1)


def _say_where(out: Path, unused: Iterable[Any]) -> None:
    """Where the reports are, and which lines of overrides.csv fit no student."""
    for line in unused:
        text = f"overrides.csv: {line.student} has no exercise {line.exercise} here; that line was not used"
        click.echo(text, err=True)
    click.echo(f"reports: {out / 'index.html'}", err=True)


def _labs(course: Path, wanted: tuple[str, ...]) -> list[Any]:
    """The labs to grade. UsageError where there is nothing to grade, or where a part would count twice."""
    from mqlab.course.grading.submissions.lab_files import lab_numbers, open_lab
    from mqlab.course.material import home, is_installed

    numbers = lab_numbers(course) if "all" in wanted else [lab.removeprefix("lab") for lab in dict.fromkeys(wanted)]
    twice = next((number for number in numbers if number != number[:2] and number[:2] in numbers), "")
    if twice:
        raise UsageError(f"part {twice} would count twice: lab {twice[:2]} is graded with all its parts")
    chosen = [lab for lab in (open_lab(course, number) for number in numbers) if lab.answers]
    if not chosen:
        raise UsageError(f"lab {', '.join(numbers)} has no exercises to grade")
    for lab in chosen:
        if lab.hidden_file is None:
            text = f"lab {lab.number} has no special hidden cases; only those made from the seed are used"
            hint = "; a clone of mqlab has them: --course CLONE" if is_installed() and course == home() else ""
            click.echo(text + hint, err=True)
    return chosen


def _by_hand(out: Path, labs: list[Any], sheet: Path | None) -> Any:
    """The lines of overrides.csv, checked before anything is graded, as is the sheet to be filled."""
    from mqlab.course.grading.reports.course_sheet import must_fit
    from mqlab.course.grading.reports.overrides import check_overrides, read_overrides

    lines = read_overrides(out)
    check_overrides(lines, {exercise.id: exercise.points for lab in labs for exercise in lab.exercises})
    if sheet is not None:
        must_fit(sheet, [lab.id for lab in labs])
    return lines


def _predicted(out: Path, labs: list[Any], submissions: list[Any]) -> Any:
    """Open the folder of the results, and write into it what the class predicted."""
    from mqlab.course.grading.reports import write_predictions
    from mqlab.course.grading.running.gradebook import open_gradebook
    from mqlab.course.grading.submissions.predictions import class_predictions

    open_gradebook(out)
    histograms = class_predictions(labs, submissions)
    write_predictions(out, histograms)
    click.echo(f"what the class predicted: {out / 'predictions.html'}", err=True)
    return histograms


def _own_days(secret: Path | None, day: str, labs: list[Any]) -> Any:
    """Student -> the ticket of the student's own day; None without a secret. Raises UsageError where it has no use."""
    with_own = [lab.number for lab in labs if lab.has_own_days]
    if secret is None:
        for number in with_own:
            click.echo(f"lab {number}: without --secret no student is judged by a day of their own", err=True)
        return None
    if not with_own:
        raise UsageError(
            f"--secret: lab {', '.join(lab.number for lab in labs)} has no days of students", hint="lab 13 has them"
        )
    from mqlab.data.traffic.trouble.capstone import capstone, read_secret

    try:
        messages, brokers = (int(number) for number in day.split("/"))
    except ValueError:
        raise UsageError(f"--day {day}: not MESSAGES/BROKERS", hint="such as 300_000/3") from None
    key = read_secret(secret)
    return lambda student: capstone(student, key, messages=messages, brokers=brokers).ticket


def _efforts(submissions: Path, labs: list[Any]) -> list[Any]:
    """How often each student checked each exercise, from the logs that students chose to hand in."""
    from mqlab.course.grading.running.attempts import efforts, read_attempts
    from mqlab.course.grading.submissions.finding import attempt_logs

    exercises = [exercise.id for lab in labs for exercise in lab.exercises]
    return [
        effort
        for student, logs in attempt_logs(submissions).items()
        for effort in efforts(student, [attempt for log in logs for attempt in read_attempts(log)], exercises)
    ]


def _print_records(records: list[Any], as_json: bool) -> None:
    """Print one line per record on stdout, and on stderr how many have exercises that were not judged."""
    from wcwidth import ljust

    from mqlab.course.grading.reports.tables import points
    from mqlab.lab.views.text_width import width

    widest = max([WIDTH, *(width(record.student) for record in records)])
    for record in sorted(records, key=lambda record: (record.student, record.lab)):
        student = ljust(record.student, widest)
        line = f"{student} {record.lab}  {record.status:<12} {points(record.scored):>3} of {record.points}"
        click.echo(json.dumps(record.to_json(), ensure_ascii=False) if as_json else line)
    unjudged = sum(bool(record.not_judged) for record in records)
    if unjudged:
        click.echo(f"{unjudged} records have exercises that could not be judged: see index.html", err=True)


def _seed(out: Path, wanted: str | None) -> str:
    """The class's seed; a seed that was not given is printed."""
    from mqlab.course.grading.running.gradebook import SEED_FILE, class_seed

    seed = class_seed(out, wanted)
    if wanted is None:
        click.echo(f"class seed: {seed} (kept in {out / SEED_FILE}, used again for this folder)", err=True)
    return seed


def _sandbox(course: Path, submissions: Path, out: Path, unsafe: bool) -> Any:
    """A sandbox that was probed, or the unsafe one with a warning."""
    from mqlab.course.grading.sandbox.covers import judges_of
    from mqlab.course.grading.sandbox.walled import Sandbox, probe, python_folders
    from mqlab.course.material import DATASETS, home

    judges = judges_of(course, python_folders())
    hidden = (*judges, str(submissions.absolute()), str(out.absolute()))
    datasets = dict.fromkeys(folder / DATASETS for folder in (course, home()))
    sandbox = Sandbox(
        "process" if unsafe else "bwrap",
        readable=tuple(str(folder) for folder in datasets if folder.is_dir()),
        hidden=hidden,
    )
    if unsafe:
        click.echo(
            "no sandbox: every answer can read the checks with their right answers, and read and change your files",
            err=True,
        )
    probe(sandbox, tuple(path for path in hidden if Path(path).is_dir()))
    return sandbox


def _fill_sheet(sheet: Path, records: list[Any], out: Path) -> None:
    """Write the sheet with grades next to the reports, and print the students who are not in it."""
    from mqlab.course.grading.reports.course_sheet import filled
    from mqlab.course.grading.running.gradebook import write_private

    text, lost = filled(sheet, records)
    write_private(out / f"filled-{sheet.name}", text)
    click.echo(f"filled: {out / f'filled-{sheet.name}'}", err=True)
    if lost:
        click.echo(f"students without a row in it: {', '.join(lost)}", err=True)


def _with_progress(grader: Any, submissions: list[Any]) -> list[Any]:
    """Judge one submission after another behind a bar; Ctrl-C ends the command."""
    from tqdm import tqdm

    records = []
    try:
        with tqdm(total=len(submissions), unit="notebook", file=sys.stderr, dynamic_ncols=True) as bar:
            for record in grader.grade(submissions):
                records.append(record)
                bar.set_postfix_str(record.student[:20], refresh=False)
                bar.update()
    except KeyboardInterrupt:
        click.echo("stopped; repeat the command with --resume to continue", err=True)
        sys.exit(130)
    return records


@click.command()
@click.argument("submissions", type=click.Path(path_type=Path))
@click.option("--seed", help="The seed of the days, the same for all students. Default: a random one, printed.")
@click.option("--unsafe-no-sandbox", is_flag=True, help="No sandbox: parts can read and change your files.")
@course_option
def league(submissions: Path, seed: str | None, unsafe_no_sandbox: bool, course: Path | None) -> None:
    """Compare the brokers of lab 16 that a class has kept: by promises, then by messages a second.

    A student's folder has the files of mybroker in a folder of that name. What is not there is mqlab's own.

    Example:  mqlab league submissions
    """
    from tqdm import tqdm

    from mqlab.course.grading.running.league import standing, table
    from mqlab.course.grading.submissions.finding import find_submissions
    from mqlab.course.grading.submissions.lab_files import open_lab
    from mqlab.course.material import course_folder

    home, used = course_folder(course), seed or secrets.token_hex(8)
    handed_in = find_submissions(submissions, [open_lab(home, "16", False)])
    sandbox = _sandbox(home, submissions, submissions, unsafe_no_sandbox)
    bar = tqdm(handed_in, unit="broker", file=sys.stderr, dynamic_ncols=True)
    standings = [standing(submission, sandbox, used) for submission in bar]
    click.echo(table(standings))
    click.echo(f"seed: {used}", err=True)


@click.command()
@click.argument("out", type=Folder)
@click.argument("student")
@click.argument("exercise")
@click.argument("points", required=False, type=click.FloatRange(min=0))
@click.option("--comment", required=True, help="Why. The student reads it in the feedback.")
def override(out: Path, student: str, exercise: str, points: float | None, comment: str) -> None:
    """Give a student different points for an exercise than the judge did; without POINTS, withdraw what was given.

    OUT is the folder of the results. Each call adds a line to overrides.csv there. Repeat mqlab grade with --resume to
    write the reports with it.

    Example:  mqlab override grades anna lab01.unit 3 --comment "Right; the check had a bug"
    """
    from mqlab.course.grading.reports.overrides import FILE, add_override
    from mqlab.course.grading.running.gradebook import is_gradebook, read_records

    # 1. A slip of the fingers is told now, and not when the reports are written.
    if not is_gradebook(out):
        raise UsageError(f"{out} holds no grades", hint="give the folder that mqlab grade wrote with --out")
    results = {
        result.id: result for record in read_records(out) if record.student == student for result in record.exercises
    }
    if exercise not in results:
        raise UsageError(
            f"{student} has no exercise {exercise} in {out}", hint=f"there are: {', '.join(results) or 'none'}"
        )
    if points is not None and points > results[exercise].points:
        raise UsageError(f"{exercise} has {results[exercise].points} points, not {points:g}")
    # 2. Only now the line is added.
    line = add_override(out, student, exercise, points, comment)
    said = (
        "the judge's points count again"
        if line.points is None
        else f"{line.points:g} of {results[exercise].points} points"
    )
    click.echo(f"{student} {exercise}: {said}")
    click.echo(f"noted in {out / FILE}; repeat mqlab grade with --resume to write the reports", err=True)


@click.command()
@click.option("--out", type=NewFile(), default="mqlab-labs.zip", show_default=True)
@course_option
def release(out: Path, course: Path | None) -> None:
    """Pack what students get: everything but solutions and tests.

    Example:  mqlab release --out mqlab-labs.zip
    """
    from mqlab.course.grading.submissions.release import write_release
    from mqlab.course.material import course_folder

    names = write_release(course_folder(course), out)
    if not names:
        raise UsageError("the course has no files to pack")
    click.echo(out)
    click.echo(f"{len(names)} files, no solutions", err=True)
