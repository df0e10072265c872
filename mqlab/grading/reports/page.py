"""The frame of a report page: one file, no script, readable on paper and on a dark screen.

Reports of mqlab.grading.

    frame("Grades", body) ─▶ <!doctype html> .. <style> .. body

A page fetches nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

STYLE = Markup("""
:root { color-scheme: light dark; --edge: #8884; --soft: #8881; --good: #17703f; --bad: #b3401a; --grey: #667; }
@media (prefers-color-scheme: dark) { :root { --good: #6fd39b; --bad: #ff9d7a; --grey: #aab; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { border: 1px solid var(--edge); padding: .25rem .6rem; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
th { white-space: nowrap; } .heat { padding: 0 .4rem; white-space: nowrap; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; } code { font-size: .92em; }
pre.trace { white-space: pre-wrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .grey { color: var(--grey); }
.wide { overflow-x: auto; } .wide.grid { max-height: 85vh; overflow: auto; }
body:has(.grid) { max-width: none; margin: 2rem; }
.grid table { border-collapse: separate; border-spacing: 0; font-size: .9rem; } .grid td { white-space: nowrap; }
.grid thead th { position: sticky; top: 0; background: Canvas; vertical-align: bottom; z-index: 2; }
.grid thead th:nth-child(n+5) { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; }
.grid td:nth-child(n+5) { text-align: center; padding: .1rem; }
.grid td:nth-child(3), .grid th:nth-child(3) { position: sticky; left: 0; background: Canvas; z-index: 1; }
.grid thead th:nth-child(3) { z-index: 3; }
details { margin: .4rem 0; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0 1rem; }
dt { color: var(--grey); } dd { margin: 0; overflow-wrap: anywhere; }
""")


def frame(title: str, *body: Markup) -> str:
    """A whole page. Everything but markup is escaped."""
    page = Markup(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>{}</title><style>{}</style></head>\n"
        "<body>\n<h1>{}</h1>\n{}\n</body></html>\n"
    )
    return str(page.format(title, STYLE, title, Markup("\n").join(body)))


def table(
    head: Sequence[object], rows: Iterable[Sequence[object]], numbers: Sequence[int] = (), kind: str = ""
) -> Markup:
    """A table; the columns of ``numbers`` are set to the right. ``kind`` "grid": many narrow columns, heads upright."""

    def cell(tag: str, column: int, value: object) -> Markup:
        side = Markup(' class="number"') if column in numbers else Markup("")
        return Markup("<{}{}>{}</{}>").format(Markup(tag), side, value, Markup(tag))

    def row(tag: str, values: Sequence[object]) -> Markup:
        return Markup("<tr>{}</tr>").format(Markup("").join(cell(tag, n, value) for n, value in enumerate(values)))

    body = Markup("\n").join(row("td", values) for values in rows)
    return Markup('<div class="{}"><table><thead>{}</thead><tbody>\n{}\n</tbody></table></div>').format(
        f"wide {kind}".strip(), row("th", head), body
    )


def mark(passed: bool) -> Markup:
    """A sign that does not rest on colour."""
    return Markup('<span class="good">✓</span>') if passed else Markup('<span class="bad">✗</span>')
