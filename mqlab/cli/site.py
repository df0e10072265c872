"""`mqlab site`: write the course as a static folder that any web server can show.

mqlab site --out site                       all labs that run in a browser
mqlab site --out site --labs 00 --labs 03   two of them to work in; every lab to read
python -m http.server -d site               then open http://localhost:8000/
"""

from __future__ import annotations

from pathlib import Path

import click

from mqlab.course.material import working_root


@click.command(short_help="Write the course as a static web site: pages, boards, and labs that run in the browser.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder to write.")
@click.option("--labs", multiple=True, metavar="NN", help="A lab to work in, as 03; again for more (default: all).")
@click.option(
    "--materials",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where Pyodide and the wheels are, or are put (default: the cache of this user).",
)
def site(out: Path, labs: tuple[str, ...], materials: Path | None) -> None:
    """Write the course as a static site. The first build fetches Pyodide from npm and wheels from PyPI.

    Nothing of the site asks another server. It must be served: a browser runs no labs from files.

    Example:  mqlab site --out site --labs 00
    """
    from mqlab.course.site.build import LABS, build

    build(out, working_root(Path.cwd()), labs or LABS, materials, lambda text: click.echo(text, err=True))
    click.echo(str(out))
