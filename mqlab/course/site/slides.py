"""A lab's pictures and questions as slides, in one file that asks no server: for the person who teaches it.

    labs/04a-….ipynb, solutions/04a-….ipynb ──▶ slides ──▶ nbconvert, reveal.js ──▶ 04a-….slides.html

    a slide                                                            the next slide
    the notebook's title and why it exists
    a picture or board, under its section's name and what is said of it
    a question before a run                                            which answer is right, why, and the note
    a question to reflect on                                           the model answer

Left out are the cells in which a learner answers, and what checks say of an answer. A picture that is drawn with an
answer stays: the teacher sees to it that it comes after the exercise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqlab.course.material import LABS
from mqlab.course.site.materials import reveal_js
from mqlab.course.site.pages import SPEAKS_OF_ANSWERS, without_other_servers
from mqlab.course.words import words_of
from mqlab.course.words.parts import parts
from mqlab.errors import UsageError

PREDICTION = re.compile(r'^predict\("(lab\d\d\.\w+)"', re.MULTILINE)
OF_A_LEARNER = sorted({*SPEAKS_OF_ANSWERS, "old_questions"})
OF_AN_ANSWER = re.compile(rf"^(?:\w+ = )?(?:{'|'.join(OF_A_LEARNER)})\(", re.MULTILINE)
MODEL_ANSWER = re.compile(r"<details><summary>.*?</summary>(.*)</details>", re.DOTALL)
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
PICTURES = ("text/html", "image/svg+xml", "image/png")
STYLE_LINK = re.compile(r'<link href="reveal\.js/[^>]*>')
LINK = re.compile(r'<a href="[\w-]+\.ipynb[^>]*>(.*?)</a>', re.DOTALL)
"""To another notebook: slides have none next to them."""
TEMPLATE = """{%- extends 'index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_css -%}<style>MQLAB_STYLE</style>{%- endblock -%}
{%- block footer_js -%}<script>MQLAB_SCRIPT</script>{%- endblock -%}
"""
STYLE = """
body { background: #fff; color: #111; font-family: system-ui, sans-serif; }
.reveal .slides { text-align: left; }
.reveal .slides section section { overflow-y: auto; max-height: 790px; box-sizing: border-box; padding: 0 24px; }
.reveal h1, .reveal h2, .reveal h3 { margin: 0 0 .5em; line-height: 1.2; }
.reveal .jp-InputPrompt, .reveal .jp-OutputPrompt { display: none; }
.reveal .jp-RenderedMarkdown { font-size: 26px; line-height: 1.35; }
.reveal .jp-OutputArea-output:not(:has([data-mqlab])) { zoom: 1.4; }
.reveal .long .jp-OutputArea-output.jp-OutputArea-output { zoom: 1; }
"""
START = """
Reveal.initialize({ width: 1280, height: 800, margin: 0.03, center: false, hash: true, transition: "none" });
const fit = ({ currentSlide: slide }) => slide.scrollHeight > slide.clientHeight && slide.classList.add("long");
Reveal.on("ready", fit);
Reveal.on("slidechanged", fit);
"""

Cell = dict[str, Any]


def write_slides(part: str, root: Path, out: Path, kept: Path | None = None) -> Path:
    """Writes the slides of a notebook ("04a") to a file in the folder ``out``; returns the file.

    ``root``: the folder with labs and solutions; ``kept``: where reveal.js is, or is put (default: the user's cache).
    Raises UsageError for an unknown notebook and where there are no solutions, MqlabError where npm cannot fetch.
    """
    known = parts()
    if part not in known:
        raise UsageError(f"there is no notebook {part!r}", hint=f"there are: {', '.join(known)}")
    path = root / LABS / known[part].page
    solved = root / "solutions" / path.name
    if not solved.is_file():
        raise UsageError(f"there is no {solved}: slides show its pictures", hint="use a clone of mqlab")
    handed_out, notebook = (json.loads(file.read_text("utf-8")) for file in (path, solved))
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{path.stem}.slides.html"
    cells = list(slide_cells(handed_out["cells"], notebook["cells"]))
    file.write_text(exported({**notebook, "cells": cells}, path.stem, kept), "utf-8")
    return file


def slide_cells(handed_out: list[Cell], solved: list[Cell]) -> Iterator[Cell]:
    """Yields the cells of the slides: a text begins a slide, the picture after it is on the same one."""
    section, said = "", ""
    same = {cell["id"]: cell["source"] for cell in handed_out}
    for number, cell in enumerate(solved):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            answer = MODEL_ANSWER.search(source)
            if number == 0:
                yield _text(source)
            elif answer:
                yield _text(source[: answer.start()])
                yield _text(f"{source[: answer.start()]}\n{answer[1].strip()}")
            headings = SECTION.findall(source)
            section = headings[-1] if headings else section
            said = source
            continue
        asked = PREDICTION.search(source)
        if asked:
            yield _text(said)
            yield _text(answered(asked[1]))
        elif same[cell["id"]] == cell["source"] and not OF_AN_ANSWER.search(source):
            pictures = [output for output in cell["outputs"] if _is_picture(output)]
            if pictures:
                yield _text(f"## {section}\n\n{_without_headings(said)}")
                yield {**cell, "outputs": pictures}
        said = ""


def answered(prediction_id: str) -> str:
    """Returns the text of the slide after a question: the right answer, what is said to each other one, the note."""
    words = words_of(prediction_id.partition(".")[0]).predictions[prediction_id]
    lines = [f"**{words.question}**", ""]
    if not words.choices:
        lines.append(f"**✓ {words.right}**")
    for choice in words.choices:
        mark = "✓ " if choice.key == words.right else ""
        lines.append(f"- **{mark}{choice.text}**" + (f"<br>{choice.refutation}" if choice.refutation else ""))
    return "\n".join([*lines, "", words.note])


def exported(notebook: dict[str, Any], title: str, kept: Path | None = None) -> str:
    """Returns the page of a notebook whose texts begin slides, with reveal.js in it."""
    from nbconvert import SlidesExporter
    from nbformat import reads

    reveal = reveal_js(kept) / "dist"
    exporter: Any = SlidesExporter(raw_template=TEMPLATE, exclude_input=True, reveal_url_prefix="reveal.js")  # type: ignore[no-untyped-call]
    cells = [{**cell, "id": f"slide-{number}"} for number, cell in enumerate(notebook["cells"])]
    node = reads(json.dumps({**notebook, "cells": cells}), 4)  # type: ignore[no-untyped-call]
    text, _ = exporter.from_notebook_node(node, {"metadata": {"name": title}})
    text = LINK.sub(r"\1", STYLE_LINK.sub("", without_other_servers(text)))
    style = (reveal / "reveal.css").read_text("utf-8") + STYLE
    script = f"{(reveal / 'reveal.js').read_text('utf-8')}\n{START}"
    return text.replace("MQLAB_STYLE", style, 1).replace("MQLAB_SCRIPT", script, 1)


def _is_picture(output: dict[str, Any]) -> bool:
    return any(kind in output.get("data", ()) for kind in PICTURES)


def _text(source: str) -> Cell:
    """A text cell that begins a slide."""
    return {"cell_type": "markdown", "metadata": {"slideshow": {"slide_type": "slide"}}, "source": source}


def _without_headings(text: str) -> str:
    """A text without headings; nothing of a question, whose answer is on its own slide."""
    return "" if text.startswith("**Predict.**") else re.sub(r"^#+ .*$", "", text, flags=re.MULTILINE).strip()
