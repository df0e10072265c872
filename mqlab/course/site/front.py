"""The first page of the site: where to begin, the labs, the boards, and what this browser cannot do, in words."""

from __future__ import annotations

import json
from pathlib import Path

from markupsafe import Markup

from mqlab.course.site.board_pages import BOARDS
from mqlab.course.site.frame import page
from mqlab.course.site.lite import NO_JSPI
from mqlab.course.site.repository import repository

LAB = "lab/index.html?path=labs/"
SETTINGS = Markup('<script id="jupyter-config-data" type="application/json" data-jupyter-lite-root=".">{}</script>\n')
"""JupyterLite reads its settings from the page above its own; those of jupyter-lite.json are enough."""
WORDS = Markup(
    "<p>How does a message broker work inside? Here is one to take apart: Apache RocketMQ in plain Python, with the "
    "same files on disk, the same frames on the wire and the same decisions. Stop it, step through it, play it again "
    "and break it. The labs run in this page: there is nothing to install, and your work stays in this browser.</p>\n"
    '<p id="first"><a href="{first}"><strong>Begin with {title}</strong></a></p>\n'
    '<p id="no-stacks" role="alert" hidden>{no_stacks}</p>\n'
    "<script>if (!('Suspending' in WebAssembly)) {{ document.getElementById('no-stacks').hidden = false;"
    " document.documentElement.classList.add('no-stacks'); }}</script>\n"
    "<style>.no-stacks .runs, .no-stacks #first {{ display: none }}</style>\n"
    "<h2>The labs</h2>\n<p>Read a lab as a page, or work in it: the first start loads 20 MB. The "
    '<a href="pages/index.html">paths through the labs</a> say which labs to take for which goal.</p>\n'
    "<table><thead><tr><th>to read<th class='runs'>to work in</tr></thead><tbody>\n{labs}</tbody></table>\n"
    '<p>Labs 10 to 13 need Spark: <a href="{repository}#readme">install mqlab</a>, then <code>make lab</code>.</p>\n'
    "<h2>The boards</h2>\n<ul>{boards}</ul>\n"
    '<p>All boards side by side, over runs of your own: <a href="pages/explorers.html">a tour of the explorers</a>'
    '<span class="runs">, and the same <a href="{explorers}">to work in</a></span>.</p>\n'
    "<h2>Your work</h2>\n<ul>\n"
    '<li class="runs"><a href="{progress}">How far am I?</a> reads the notebooks that you saved here.</li>\n'
    "<li>Save with Ctrl-S. <em>File &gt; Download</em> gives the notebook to hand in; clearing this site's data in the "
    "browser deletes your work.</li>\n</ul>\n"
    '<p><a href="pages/glossary.html">Glossary</a> · <a href="pages/not-modelled.html">What is not modelled</a></p>'
)
ROW = Markup('<tr><td><a href="pages/{stem}.html">{title}</a><td class="runs">{runs}</tr>\n')


def front_page(root: Path, labs: tuple[str, ...]) -> str:
    """The first page. ``labs``: the numbers of the labs that are in the site to work in, as 00."""
    rows, titles = Markup(""), {}
    for path in sorted((root / "labs").glob("[0-9]*.ipynb")):
        titles[path.name] = title = _title(path)
        runs = Markup('<a href="{}{}">run</a>').format(LAB, path.name) if path.name[:2] in labs else Markup("–")
        rows += ROW.format(stem=path.stem, title=title, runs=runs)
    boards = Markup("").join(
        Markup('<li><a href="boards/{0}.html">{0}</a>: {1}</li>').format(name, words)
        for name, (_, words) in BOARDS.items()
    )
    first = next(name for name in titles if name[:2] in labs)
    body = WORDS.format(
        first=LAB + first,
        title=titles[first],
        no_stacks=NO_JSPI,
        labs=rows,
        repository=repository(),
        boards=boards,
        explorers=LAB + "explorers.ipynb",
        progress=LAB + "progress.ipynb",
    )
    return page("mqlab: a message broker to take apart", SETTINGS + body)


def _title(path: Path) -> str:
    """The heading of a notebook, as "00 Message flow: a message's day"."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        first = "".join(cell["source"]).partition("\n")[0]
        if first.startswith("# "):
            return first.removeprefix("# ")
    return path.stem
