"""`mqlab slides`: write the pictures and questions of a lab as slides.

mqlab slides 04a                 04a-how-far-have-we-read.slides.html, in this folder
mqlab slides 04a 04b --out talk  both, in the folder talk
"""

from __future__ import annotations

from pathlib import Path

import click

from mqlab.course.material import working_root


@click.command(short_help="Write a lab's pictures and questions as slides, answers on the next slide.")
@click.argument("notebooks", metavar="NOTEBOOK...", nargs=-1, required=True)
@click.option("--out", default=".", type=click.Path(file_okay=False, path_type=Path), help="The folder to write to.")
@click.option(
    "--materials",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where reveal.js is, or is put (default: the cache of this user).",
)
def slides(notebooks: tuple[str, ...], out: Path, materials: Path | None) -> None:
    """Write slides of notebooks, as 04a: one file each, which any browser opens without a network or a server.

    The first call fetches reveal.js from npm. Space shows the next slide, F fills the screen.

    Example:  mqlab slides 04a --out build
    """
    from mqlab.course.site.slides import write_slides

    for notebook in notebooks:
        click.echo(str(write_slides(notebook, working_root(Path.cwd()), out, materials)))
