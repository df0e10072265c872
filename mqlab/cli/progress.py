"""`mqlab progress`: what was predicted, tried and checked in the notebooks of a folder.

    mqlab progress                      the folder that `mqlab lab` opens
    mqlab progress my-labs --page progress.html

The notebooks are read as data; save them first. The bars on the index are drawn again.
"""

from __future__ import annotations

from pathlib import Path

import click

from mqlab.cli.my_labs import draw_progress
from mqlab.cli.new_file import NewFile
from mqlab.course.material import COPIES, LABS, working_root
from mqlab.errors import UsageError

PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>My labs</title>"
    "<style>:root{{color-scheme:light dark}}body{{font:16px sans-serif;margin:2em}}td,th{{padding:4px 12px}}"
    "@media(max-width:700px){{body{{margin:1em}}td,th{{padding:4px}}}}</style>"
    "<h1>My labs</h1>{}<p>Read from the saved notebooks in {}. Hidden checks run at grading.</p></html>"
)


@click.command(short_help="Show how far you are in the labs.")
@click.argument("directory", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--page", type=NewFile(), help="Also write it as an HTML page.")
def progress(directory: Path | None, page: Path | None) -> None:
    """Show what was predicted, tried and checked in the saved notebooks of DIRECTORY (default: my-labs, else labs).

    "knew at first" counts the predictions that were right; "knows now" counts the last answer to old_questions as well.

    Example:  mqlab progress my-labs --page progress.html
    """
    from mqlab.course import mybroker
    from mqlab.course.grading.submissions import progress as saved
    from mqlab.lab.parts import FOLDER

    root = working_root(Path.cwd())
    folder = directory or next((root / name for name in (COPIES, LABS) if (root / name).is_dir()), root)
    labs = saved.progress(folder)
    if not labs:
        raise UsageError(f"no notebook of a lab is in {folder}", hint="save your notebooks, then name their folder")
    shown, own = saved.table(labs), mybroker.table(folder)
    click.echo(str(shown))
    again = saved.asked_again(folder)
    if len(again):
        click.echo(f"\nOld questions, at first and now:\n{again}")
    if len(own):
        click.echo(f"\nYour broker, in {folder.name}/{FOLDER}:\n{own}")
    draw_progress(root)
    if page is not None:
        from markupsafe import Markup

        tables = "".join(part.html() for part in (shown, again, own) if len(part))
        page.write_text(str(Markup(PAGE).format(Markup(tables), folder.name)), "utf-8")
