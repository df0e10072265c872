"""``python -m tests.unchanged``: write recorded.json anew."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tqdm import tqdm

from mqlab.spark import session
from tests.unchanged.recordings import REPORT, everything, record
from tests.unchanged.report_lines import lines_of_report
from tests.unchanged.traces import digest

digests = {name: play() for name, play in tqdm(list(everything()))}
with tempfile.TemporaryDirectory() as folder:
    digests[REPORT] = digest(lines_of_report(session("local[2]"), Path(folder)))
record(digests)
