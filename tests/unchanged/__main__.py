"""``python -m tests.unchanged``: write recorded.json anew."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tqdm import tqdm

from mqlab.course.teach.datasets import small_day
from mqlab.data.spark import pipeline, session
from tests.data.spark.pipeline.world import play_day
from tests.unchanged.recordings import PLAYED_REPORT, REPORT, everything, record
from tests.unchanged.report_lines import lines_of_report
from tests.unchanged.traces import digest

digests = {name: play() for name, play in tqdm(list(everything()))}
with tempfile.TemporaryDirectory() as folder:
    spark = session("local[2]")
    stores = {REPORT: small_day(), PLAYED_REPORT: play_day(Path(folder) / "stores").directory}
    for number, (name, directory) in enumerate(stores.items()):
        out = Path(folder) / str(number) / "out"
        pipeline.run(directory, out, spark=spark)
        digests[name] = digest(lines_of_report(out, out.parent))
record(digests)
