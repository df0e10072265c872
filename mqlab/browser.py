"""Whether this Python runs in a web page (Pyodide): asked wherever a browser lacks what an operating system has.

no threads, processes and signals   mqlab.course.teach.blocked watches nothing; ``dot`` draws nothing
no locks of files, no descriptors   one process has all files to itself
mappings are private copies         mqlab.rocketmq.machine.files writes through
no sparse files                     a store's files are smaller: mqlab.rocketmq.store.config
no greenlet                         mqlab.lab.runtime.stacks takes JavaScript's promises
"""

from __future__ import annotations

import sys
import warnings

IN_BROWSER: bool = sys.platform == "emscripten"
if IN_BROWSER:
    # tqdm starts a thread that looks after bars which stand still, and says so where it cannot.
    warnings.filterwarnings("ignore", "tqdm:disabling monitor support")
