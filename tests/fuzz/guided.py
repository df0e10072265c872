"""A fuzzer that is led by coverage: ``python -m tests.fuzz.guided [--inputs 100000] [--reader "a frame"] [--seed 1]``.

Atheris, from the extra ``fuzz``, writes the scripts of ``mutations`` and keeps those that reach a line of mqlab which
none had reached before. Its engine ends the process when it is done, so every reader gets a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DONE = "Done "
"""How the engine's last line begins; it says how many inputs there were."""


def _inside(name: str, inputs: int, seed: int) -> None:
    """Run one reader in this process; the engine does not return."""
    import atheris

    # mqlab has to be imported under the engine's eyes, so nothing of it is imported before.
    with atheris.instrument_imports(include=["mqlab"]):
        readers = importlib.import_module("tests.fuzz.readers")
        requests = importlib.import_module("tests.fuzz.requests")
    mutations = importlib.import_module("tests.fuzz.mutations")
    every = {each.name: each for each in (*readers.READERS, *readers.store_readers(), requests.REQUESTS)}
    reader = every[name]
    samples = reader.samples()

    def one_input(script: bytes) -> None:
        try:
            reader.read(mutations.from_script(samples, script))
        except reader.refuses:
            pass

    # Long scripts from the beginning: short ones take a sample apart in too few places.
    options = [f"-runs={max(1, inputs // reader.slow)}", f"-seed={seed}", "-max_len=65", "-len_control=0"]
    atheris.Setup([sys.argv[0], *options], one_input)
    atheris.Fuzz()


def guided(name: str, inputs: int, seed: int = 1) -> tuple[bool, str]:
    """Whether a reader withstood so many inputs, and what the engine said. A slow reader gets fewer."""
    words = ["--inside", "--reader", name, "--inputs", str(inputs), "--seed", str(seed)]
    command = [sys.executable, "-m", "tests.fuzz.guided", *words]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    return ended.returncode == 0 and DONE in ended.stderr, ended.stderr


def main() -> int:
    """Try one reader or all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", default="", help="one of them; without it all")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        _inside(options.reader, options.inputs, options.seed)
    from tests.fuzz.readers import READERS, store_readers
    from tests.fuzz.requests import REQUESTS

    broken = 0
    for reader in (*READERS, *store_readers(), REQUESTS):
        if options.reader in ("", reader.name):
            stands, said = guided(reader.name, options.inputs, options.seed)
            broken += not stands
            last = next((line for line in reversed(said.splitlines()) if "cov:" in line), "")
            print(
                f"{reader.name:<42}{last.strip()}" if stands else f"{reader.name}: broken\n{said[-4000:]}", flush=True
            )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
