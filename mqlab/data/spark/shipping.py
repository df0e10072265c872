"""mqlab's own modules as one zip file, sent to executors that may not have the package.

It is needed before the first job of a cluster.

    mqlab/**.py ── zip, named by its content ──> SparkContext.addPyFile, or addArtifacts for Spark Connect

What mqlab itself imports there (pyspark, numpy, pyarrow) has to be installed on every machine.
Left out: files that are not modules, such as templates; executors read stores, they show nothing.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import mqlab
from mqlab.data.spark.java import cache_directory
from mqlab.whole_files import whole_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same modules make the same file


def ship(spark: SparkSession) -> Path:
    """Give this mqlab to the executors of a session, and return the file that was sent."""
    package = packed(cache_directory() / "spark-packages")
    if is_remote(spark):
        spark.addArtifacts(str(package), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(package))
    return package


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is the client of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def packed(folder: Path) -> Path:
    """The package as a zip file in ``folder``, written unless it exists. Older files stay, as jobs may need them."""
    root = Path(mqlab.__file__).parent
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for module in sorted(root.rglob("*.py")):
            name = module.relative_to(root.parent).as_posix()
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), module.read_bytes(), zipfile.ZIP_DEFLATED)
    target = folder / f"mqlab-{hashlib.sha256(content.getvalue()).hexdigest()[:12]}.zip"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as draft:
            draft.write_bytes(content.getvalue())
    return target
