"""`mqlab start`, `restore`, `check`: a student begins a lab, gets a fresh copy of it, and checks the answers.

    start ─▶ a dated copy of the notebook ─▶ work ─▶ check ─▶ hand in        restore ─▶ a further copy

What the teacher types is in mqlab.cli.grading; the judging is in mqlab.course.grading.
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path

import click

from mqlab.cli.grading import Folder, course_option
from mqlab.counts import counted


@click.command()
@click.argument("notebooks", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object per notebook.")
@course_option
def check(notebooks: tuple[Path, ...], as_json: bool, course: Path | None) -> None:
    """Run the public checks on your own notebook. Exit code 1 if an answer is wrong.

    Example:  mqlab check labs/01-*.ipynb
    """
    from mqlab.course.grading.submissions.own_work import check_notebook

    wrong = False
    for notebook in notebooks:
        record = check_notebook(notebook, course)
        wrong = wrong or any(exercise.state in ("failed", "stopped") for exercise in record.exercises)
        if as_json:
            click.echo(json.dumps(record.to_json(), ensure_ascii=False))
            continue
        for exercise in record.exercises:
            _, count = exercise.count("public")
            said = (
                counted(count, f"of {count} public checks pass", "of 1 public check passes")
                if exercise.state == "passed"
                else exercise.reason
            )
            click.echo(f"{'✓' if exercise.state == 'passed' else '✗' if count else '○'} {exercise.id}: {said}")
            # The first case that failed is enough: the later ones often fail for the same reason.
            wrong_case = next((case for case in exercise.cases if not case.passed), None)
            for name in ("first_wrong", "expected", "found", "trace"):
                if wrong_case is not None and getattr(wrong_case, name):
                    click.echo(f"    {name.replace('_', ' ')}: {getattr(wrong_case, name)}")
    # Only now: one wrong notebook must not keep the others from being checked.
    if wrong:
        sys.exit(1)


@click.command()
@click.argument("number")
@click.option("--to", type=Folder, help="The folder to work in. Default: labs or my-labs if it exists, else this one.")
@course_option
def start(number: str, to: Path | None, course: Path | None) -> None:
    """Start a lab (01) or one part of it (01a): make a dated copy of its notebook, unless there is one already.

    Example:  mqlab start 01
    """
    from mqlab.course.grading.submissions.lab_files import open_lab
    from mqlab.course.grading.submissions.working_copies import copies, fresh_copy
    from mqlab.course.material import course_folder, working_folder

    lab = open_lab(course_folder(course), number.removeprefix("lab"), False)
    folder = to or working_folder(Path())
    started = []
    for part in lab.parts:
        existing = copies(part, folder)
        if existing:
            started.append(part.name)
        click.echo(existing[-1] if existing else fresh_copy(lab, part, folder, datetime.date.today())[0])
    if started:
        what = ", ".join(started) if lab.is_in_parts else "this lab"
        click.echo(f"you have started {what} already; mqlab restore makes a fresh copy next to your work", err=True)


@click.command()
@click.argument("number")
@click.option("--to", type=Folder, help="The folder to work in. Default: labs or my-labs if it exists, else this one.")
@click.option("--answers-of", type=click.Path(path_type=Path), help="A notebook whose answers are carried over.")
@course_option
def restore(number: str, to: Path | None, answers_of: Path | None, course: Path | None) -> None:
    """Make a fresh dated copy of a lab (01) or of one part of it (01a). Nothing is overwritten.

    Example:  mqlab restore 01a --answers-of old.ipynb
    """
    from mqlab.course.grading.submissions.lab_files import open_lab
    from mqlab.course.grading.submissions.working_copies import fresh_copy
    from mqlab.course.material import course_folder, working_folder

    lab = open_lab(course_folder(course), number.removeprefix("lab"), False)
    carried: list[str] = []
    for part in lab.parts:
        path, answers = fresh_copy(lab, part, to or working_folder(Path()), datetime.date.today(), answers_of)
        carried += answers
        click.echo(path)
    if answers_of is not None:
        click.echo(f"answers carried over: {', '.join(carried) or 'none'}", err=True)
