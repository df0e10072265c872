"""The nodes and their connections: boxes and arrows laid out by Graphviz if it is installed, else lines of text.

Mirrors: the architecture pictures of RocketMQ's documentation, drawn from the world at hand. Lab 00 shows its world.

    Diagram(["shop", "broker-a"], [("shop", "broker-a", "sends")])
      dot (the program)  ->  else the pygraphviz wheel  ->  else    shop ── sends ──▶ broker-a

Left out: a layout of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import graphviz
from markupsafe import Markup

from mqlab.browser import IN_BROWSER
from mqlab.lab.views.picture import Picture
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import PALETTE, colour
from mqlab.lab.views.view import folded_text, image

DRAWN_IN = ("ink", "muted", "paper")
INK, MUTED, PAPER = (PALETTE[name][0] for name in DRAWN_IN)  # Graphviz knows plain colours only
HINT = (
    "no picture: a browser has no Graphviz"
    if IN_BROWSER
    else "no picture: Graphviz is not installed (your package manager has it; or: pip install pygraphviz)"
)


class Diagram(Picture):
    """Nodes (names, or name -> label) and edges (from, to, label), drawn from left to right.

    >>> print(Diagram(["shop", "broker-a"], [("shop", "broker-a", "sends")]))
    shop ── sends ──▶ broker-a
    """

    def __init__(
        self,
        nodes: Iterable[str] | Mapping[str, str],
        edges: Iterable[Sequence[str]],
        *,
        title: str = "",
    ) -> None:
        self.nodes = dict(nodes) if isinstance(nodes, Mapping) else {name: name for name in nodes}
        self.edges = [(edge[0], edge[1], edge[2] if len(edge) > 2 else "") for edge in edges]
        self.title = title
        for name in [end for edge in self.edges for end in edge[:2]]:
            self.nodes.setdefault(name, name)

    @property
    def alt(self) -> str:
        return f"{self.title or 'Diagram'}: {len(self.nodes)} nodes, {len(self.edges)} arrows"

    def table(self) -> Table:
        """One row per arrow: source, target, and label if any has one."""
        rows = [{"source": source, "target": target, "label": label} for source, target, label in self.edges]
        columns = ["source", "target", *(["label"] if any(label for _, _, label in self.edges) else [])]
        return Table(rows, columns=columns, title=self.title, empty="no arrows")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        for source, target, label in self.edges:
            lines.append(f"{self.nodes[source]} ──{f' {label} ' if label else ''}──▶ {self.nodes[target]}")
        linked = {name for source, target, _ in self.edges for name in (source, target)}
        lines += [label for name, label in self.nodes.items() if name not in linked]
        return "\n".join(lines)

    def source(self) -> str:
        """The picture in Graphviz's language."""
        graph = graphviz.Digraph(
            graph_attr={"rankdir": "LR", "bgcolor": PAPER, "pad": "0.2", "nodesep": "0.35"},
            node_attr={
                "shape": "box",
                "style": "rounded",
                "fontname": "sans-serif",
                "fontsize": "11",
                "color": MUTED,
                "fontcolor": INK,
            },
            edge_attr={"fontname": "sans-serif", "fontsize": "10", "color": MUTED, "fontcolor": INK},
        )
        for name, label in self.nodes.items():
            graph.node(name, graphviz.escape(label))
        for source, target, label in self.edges:
            graph.edge(source, target, graphviz.escape(label))
        return str(graph.source)

    def svg(self) -> str:
        """The drawing; an empty string if neither ``dot`` nor pygraphviz is installed."""
        drawing = _drawn_by_dot(self.source()) or _drawn_by_wheel(self.source()) or ""
        for name in DRAWN_IN:
            drawing = drawing.replace(f'"{PALETTE[name][0]}"', f'"{colour(name)}"')
        return drawing

    def html(self) -> Markup:
        drawing = self.svg()
        if not drawing:
            return Markup("<pre>{}\n\n{}</pre>").format(self.text(), HINT)
        return Markup("<div>{}{}</div>").format(image(drawing, self.alt), folded_text("the same as text", self.text()))

    def __repr__(self) -> str:
        return f"<Diagram of {len(self.nodes)} nodes and {len(self.edges)} arrows>"


def _drawn_by_dot(source: str) -> str:
    try:
        return str(graphviz.pipe("dot", "svg", source.encode(), quiet=True).decode())
    except (graphviz.ExecutableNotFound, graphviz.CalledProcessError, OSError):  # a browser has no processes
        return ""


def _drawn_by_wheel(source: str) -> str:
    try:
        import pygraphviz  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return ""
    graph = pygraphviz.AGraph(string=source)
    graph.layout(prog="dot")
    drawn: bytes = graph.draw(format="svg")
    return drawn.decode()
