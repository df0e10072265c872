"""The colours of pictures: names that take the notebook's own theme, each with a light and a dark value of its own.

Every picture of every lab is drawn in them.

    INK     var(--mq-ink,#1f2430)     the theme's text colour in a notebook, else the value after the comma

The page around a picture says which of the two values holds: JupyterLab's and nbconvert's theme, VS Code's, else the
system's setting. Colours differ in lightness too, so that they can be told apart in grey; shapes and words repeat them.
Left out: a choice of colours by the reader.
"""

from __future__ import annotations

from typing import Final

PALETTE: Final = {
    # name: (value on light, value on dark)
    "ink": ("#1f2430", "#e8eaee"),
    "muted": ("#5b6472", "#a7b0bd"),
    "rule": ("#cfd4dc", "#4a515c"),
    "paper": ("#fcfcfa", "#15181d"),
    "wash": ("#eef1f5", "#262b33"),
    "shade": ("#dfe4ea", "#3a424e"),
    "blue": ("#0b5fa5", "#7cbcf5"),
    "green": ("#1b7f4b", "#6fd09b"),
    "violet": ("#7a3e9d", "#d3a5ee"),
    "red": ("#b3401a", "#ff9d76"),
    "amber": ("#8a5a00", "#f0c05a"),
    "pale-blue": ("#dbe8f6", "#1f3a55"),
    "pale-violet": ("#c9a7dd", "#6d4a86"),
    "pale-amber": ("#f6e3b4", "#4d3c12"),
    "pale-red": ("#f7d9cc", "#5c2c1c"),
}
OF_THE_NOTEBOOK: Final = {
    "ink": "--jp-content-font-color1",
    "muted": "--jp-content-font-color2",
    "paper": "--jp-layout-color0",
}


def colour(name: str) -> str:
    """A colour of the palette as SVG and CSS take it; drawn alone, without a page around it, it is the light one.

    >>> colour("blue")
    'var(--mq-blue,#0b5fa5)'
    """
    return f"var(--mq-{name},{PALETTE[name][0]})"


def _value(name: str) -> str:
    light, dark = PALETTE[name]
    own = f"light-dark({light},{dark})"
    return f"var({OF_THE_NOTEBOOK[name]},{own})" if name in OF_THE_NOTEBOOK else own


INK, MUTED, RULE, PAPER, WASH = map(colour, ("ink", "muted", "rule", "paper", "wash"))
BLUE, GREEN, VIOLET, RED, AMBER = map(colour, ("blue", "green", "violet", "red", "amber"))

SCHEMES: Final = (
    ".mqlab-view{color-scheme:light dark}"
    '[data-jp-theme-light="true"] .mqlab-view,.vscode-light .mqlab-view{color-scheme:light}'
    '[data-jp-theme-light="false"] .mqlab-view,.vscode-dark .mqlab-view{color-scheme:dark}'
)
COLOURS: Final = ".mqlab-view{" + ";".join(f"--mq-{name}:{_value(name)}" for name in PALETTE) + "}"
# A notebook that is not trusted drops style sheets and SVG but keeps the words in the SVG. So the drawing is hidden
# until this style sheet shows it, and the image of it is shown until this style sheet hides it.
SHOWN: Final = ".mqlab-view .mqlab-drawing{display:block!important}.mqlab-view .mqlab-image{display:none!important}"
# nbconvert writes a page with JupyterLab's light colours, whatever the browser prefers; its body has a class that
# JupyterLab's has not. A picture's style sheet gives the whole page dark colours in a dark browser.
EXPORTED_PAGE: Final = 'body.jp-Notebook[data-jp-theme-light="true"]'
DARK_PAGE: Final = {
    **dict.fromkeys(("layout-color0", "layout-color1"), "#15181d"),
    **dict.fromkeys(("layout-color2", "cell-editor-background", "rendermime-table-row-background"), "#20242c"),
    **dict.fromkeys(("layout-color3", "border-color0", "border-color1", "cell-editor-border-color"), "#4a515c"),
    **dict.fromkeys(("border-color2", "border-color3"), "#353b45"),
    **dict.fromkeys(("content-font-color0", "content-font-color1", "ui-font-color0", "ui-font-color1"), "#e8eaee"),
    **dict.fromkeys(("content-font-color2", "content-font-color3", "ui-font-color2", "ui-font-color3"), "#a7b0bd"),
    **dict.fromkeys(("content-link-color", "brand-color0", "brand-color1"), "#7cbcf5"),
    "cell-prompt-not-active-font-color": "#a7b0bd",
    "rendermime-error-background": "#5c2c1c",
    "rendermime-table-row-hover-background": "#1f3a55",
    # Code
    **dict.fromkeys((f"mirror-editor-{name}-color" for name in ("keyword", "builtin", "variable-3", "tag")), "#6fd09b"),
    **dict.fromkeys((f"mirror-editor-{name}-color" for name in ("number", "atom", "quote")), "#8fd6a8"),
    **dict.fromkeys((f"mirror-editor-{name}-color" for name in ("string", "string-2", "error")), "#ff9d76"),
    **dict.fromkeys((f"mirror-editor-{name}-color" for name in ("operator", "meta", "bracket")), "#d3a5ee"),
    **dict.fromkeys((f"mirror-editor-{name}-color" for name in ("def", "variable-2", "punctuation")), "#9dccf7"),
    **dict.fromkeys((f"mirror-editor-{name}-color" for name in ("property", "attribute", "header", "link")), "#9dccf7"),
    "mirror-editor-variable-color": "#e8eaee",
    **dict.fromkeys((f"mirror-editor-{name}-color" for name in ("comment", "qualifier", "hr")), "#a7b0bd"),
}
EXPORTED: Final = (
    "@media screen and (prefers-color-scheme:dark){"
    + EXPORTED_PAGE
    + "{color-scheme:dark;"
    + ";".join(f"--jp-{name}:{value}" for name, value in DARK_PAGE.items())
    + "}"
    + EXPORTED_PAGE
    + " .mqlab-view{color-scheme:dark}}"
    # nbconvert cuts what is wider than a narrow page: code, tables in prose.
    + "body.jp-Notebook .jp-InputArea-editor,body.jp-Notebook .jp-RenderedMarkdown{overflow-x:auto}"
)
STYLE: Final = SCHEMES + COLOURS + SHOWN + EXPORTED
"""What a page needs for pictures, as a style sheet; every picture brings it along."""
