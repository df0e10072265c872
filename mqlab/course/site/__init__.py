"""The course as a static folder: pages, boards, and the labs in JupyterLite, with nothing to install and no server.

    materials.py   what is fetched once from npm and PyPI, pinned by hash
    python.py      Pyodide with the wheels of mqlab and its needs       static/pyodide
    lite.py        JupyterLite with the labs                            lab/, files/
    pages.py       every lab as handed out, to read                     pages/
    board_pages.py a page a board, its state in the address             boards/
    front.py       the first page                                       index.html
    build.py       all of it

Nothing that is opened asks another server, and all links are relative.
"""
