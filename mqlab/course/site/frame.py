"""The frame of the site's own pages: a title, a link to the first page, and a style that follows the reader's theme."""

from __future__ import annotations

from markupsafe import Markup

STYLE = """:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:70em;margin:0 auto;padding:1em}
td,th{padding:.3em .8em .3em 0;text-align:left;vertical-align:top}
[role=alert]{background:#fff3cd;color:#000;padding:1em}"""
PAGE = Markup(
    '<!doctype html>\n<html lang="en"{alone}><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width,initial-scale=1"><title>{title}</title>'
    '<link rel="icon" href="{up}icon-120x120.png">'
    "<style>{style}</style></head>\n<body>{back}<h1>{title}</h1>\n{body}\n</body></html>\n"
)


def page(title: str, body: Markup, *, up: str = "", alone: bool = False) -> str:
    """A whole page. ``up`` leads to the first page from a folder; ``alone``: its board has its state in the address."""
    back = Markup('<p><a href="{}index.html">mqlab</a></p>').format(up) if up else Markup("")
    mark = Markup(" data-mqlab-alone") if alone else Markup("")
    return str(PAGE.format(alone=mark, up=up, title=title, style=Markup(STYLE), back=back, body=body))
