"""The pages of files as a grid: which of them a power cut would leave as they are, and which it would undo.

Mirrors: what the operating system knows as dirty pages, and does not show. Lab 01 looks at it before it pulls the plug.

    commitlog/00000000000000000000   ■■■▲▲····      3 synced, 2 written and not synced, 251 never written
    consumequeue/orders/0/0000…      ▲·             ■ synced   ▲ written, not synced   · never written

A page has 4096 bytes. A file that is written as a whole is one piece, whatever its size.
Left out: pages of which a power cut would leave a half.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wcwidth import ljust

from mqlab.counts import counted
from mqlab.lab.views.picture import Canvas, Look, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.text_width import cut, printable, width
from mqlab.lab.views.theme import BLUE, INK, MUTED, RED, RULE, WASH, colour

PAGE = 4096
CELL = 16
CELLS_PER_ROW = 32
MAX_CELLS = 128  # of a file; more are told in words
MAX_FILES = 40
MAX_NAME_COLUMNS = 44
MARGIN = 18
SYNCED = Look(BLUE, "square", "synced: survives a power cut")
UNSYNCED = Look(RED, "triangle", "written, not synced: a power cut undoes it")
NEVER = Look(MUTED, "dot", "never written")
LETTERS = {SYNCED: "■", UNSYNCED: "▲", NEVER: "·"}


@dataclass(frozen=True, slots=True)
class FilePages:
    """The pages of one file. ``pages`` counts all, ``written`` those up to the last that was ever written.

    ``unsynced`` holds the numbers of the pages that are written and not synced; ``whole`` marks a file whose whole
    content is. ``note`` tells what else a power cut would undo, such as the file's name.
    """

    path: str
    pages: int
    written: int
    unsynced: Sequence[int] = field(default_factory=tuple)
    whole: bool = False
    note: str = ""

    def look(self, page: int) -> Look:
        """How a page is drawn."""
        if self.whole or page in self.unsynced:
            return UNSYNCED
        return SYNCED if page < self.written else NEVER

    @property
    def words(self) -> str:
        """The file in words."""
        if self.whole:
            text = "its whole content is written and not synced"
        else:
            unsynced, never = len(self.unsynced), self.pages - self.written
            text = f"{self.written - unsynced} synced, {unsynced} written and not synced"
            text += f", {never} never written" if never else ""
        return f"{text}; {self.note}" if self.note else text

    @property
    def drawn(self) -> int:
        """How many pages are drawn: the written ones, and one more to show that nothing follows."""
        return min(max(self.written + 1, 1), max(self.pages, 1), MAX_CELLS)


class PageGrid(Picture):
    """Files and their pages. ``others``: what else a power cut would undo, as texts (names that were created, …).

    >>> print(PageGrid([FilePages("commitlog/0", 4, 3, (2,))], title="unsynced"))
    unsynced
    commitlog/0  ■■▲·  2 synced, 1 written and not synced, 1 never written
    ■ synced: survives a power cut   ▲ written, not synced: a power cut undoes it   · never written
    """

    def __init__(self, files: Iterable[FilePages], *, others: Iterable[str] = (), title: str = "") -> None:
        self.files = list(files)
        self.others = list(others)
        self.title = title

    @property
    def alt(self) -> str:
        count = sum(1 if file.whole else len(file.unsynced) for file in self.files)
        return f"{self.title or 'Pages'}: {count} written and not synced, in {counted(len(self.files), 'files')}"

    def table(self) -> Table:
        """One row per unsynced page, whole file or other change: file, what, page, from_byte, to_byte."""
        rows: list[dict[str, object]] = []
        for file in self.files:
            if file.whole:
                rows.append({"file": file.path, "what": "content", "page": None, "from_byte": 0, "to_byte": None})
            for page in file.unsynced:
                span = {"page": page, "from_byte": page * PAGE, "to_byte": (page + 1) * PAGE}
                rows.append({"file": file.path, "what": "page", **span})
        rows += [{"file": other, "what": "name"} for other in self.others]
        columns = ["file", "what", "page", "from_byte", "to_byte"]
        return Table(rows, columns=columns, title=self.title, empty="everything written is synced")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        shown = self.files[:MAX_FILES]
        names = [cut(printable(file.path), MAX_NAME_COLUMNS) for file in shown]
        wide, longest = max(map(width, names), default=0), max((file.drawn for file in shown), default=0)
        for name, file in zip(names, shown, strict=True):
            cells = "".join(LETTERS[file.look(page)] for page in range(file.drawn))
            lines.append(f"{ljust(name, wide)}  {cells:<{min(longest, MAX_CELLS)}}  {file.words}")
        lines += self._rest()
        if shown:
            lines.append("   ".join(f"{LETTERS[look]} {look.meaning}" for look in LETTERS))
        return "\n".join(lines if self.files or self.others else [*lines, "everything written is synced"])

    def _rest(self) -> list[str]:
        more = len(self.files) - MAX_FILES
        lines = [f"… {counted(more, 'more files')}; .table() has all unsynced pages"] if more > 0 else []
        return lines + [f"name not synced: {printable(other)}" for other in self.others[:MAX_FILES]]

    def svg(self) -> str:
        # 1. Measure: each file has a line of words, and its cells below in rows of CELLS_PER_ROW.
        shown = self.files[:MAX_FILES]
        heights = [24 + CELL * -(-file.drawn // CELLS_PER_ROW) + 14 for file in shown]
        top = MARGIN + (26 if self.title else 0)
        titles = [f"{cut(printable(file.path), MAX_NAME_COLUMNS)}   {file.words}" for file in shown]
        widest = max([CELLS_PER_ROW * CELL // 2, *map(text_pixels, [self.title, *titles, *self._rest()])]) + 60
        legend = sum(30 + 6 * len(look.meaning) for look in LETTERS)
        canvas = Canvas(max(widest, legend) + 2 * MARGIN, top + sum(heights) + 20 * len(self._rest()) + 34)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        # 2. The cells.
        y = top
        for file, height in zip(shown, heights, strict=True):
            name = cut(printable(file.path), MAX_NAME_COLUMNS)
            canvas.text(MARGIN, y + 12, name, INK, bold=True)
            canvas.text(MARGIN + text_pixels(name) * 5 // 4 + 16, y + 12, file.words, MUTED)  # bold digits are wide
            for page in range(file.drawn):
                self._cell(canvas, file, page, y + 22)
            y += height
        for line in self._rest():
            canvas.text(MARGIN, y + 14, line, INK)
            y += 20
        if not self.files and not self.others:
            canvas.text(MARGIN, y + 12, "everything written is synced", MUTED)
        # 3. The legend.
        x = MARGIN
        for look in LETTERS:
            canvas.mark(look, x + 6, canvas.height - 16)
            canvas.text(x + 18, canvas.height - 12, look.meaning, MUTED, size=11)
            x += 30 + 6 * len(look.meaning)
        return canvas.svg()

    @staticmethod
    def _cell(canvas: Canvas, file: FilePages, page: int, y: int) -> None:
        look = file.look(page)
        x, y = MARGIN + CELL * (page % CELLS_PER_ROW), y + CELL * (page // CELLS_PER_ROW)
        fill = {UNSYNCED: colour("pale-red"), SYNCED: colour("pale-blue"), NEVER: WASH}[look]
        title = f"page {page}, bytes {page * PAGE} to {(page + 1) * PAGE}: {look.meaning}"
        canvas.box(x, y, CELL - 2, CELL - 2, fill, border=RULE, title=title)
        canvas.mark(look, x + CELL // 2 - 1, y + CELL // 2 - 1)

    def __repr__(self) -> str:
        return f"<PageGrid {self.alt}>"
