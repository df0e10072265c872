"""Builds StoreDoor.java with Maven and puts questions to it: RocketMQ's own store over directories of ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OPENED = ("java.base/java.nio", "java.base/sun.nio.ch", "java.base/jdk.internal.misc", "java.base/jdk.internal.ref")
BUILD_SECONDS, RUN_SECONDS = 900, 300


def what_is_missing() -> str | None:
    """Why the real store cannot be asked here; None when it can."""
    for program, package in (("javac", "a JDK, 17 or newer"), ("mvn", "Maven")):
        if shutil.which(program) is None:
            return f"needs {package} ({program} is not on the PATH)"
    return None


class JavaStore:
    """The compiled program. ``run`` takes lists of words (see StoreDoor) and runs them in one Java process."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._runs = 0
        self._build(HERE / "target")

    def _build(self, target: Path) -> None:
        classpath = target / "classpath.txt"
        sources = [HERE / "pom.xml", *(HERE / "java").iterdir()]
        stale = not classpath.exists() or max(s.stat().st_mtime for s in sources) > classpath.stat().st_mtime
        if stale:
            command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "compile"]
            built = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
            if built.returncode:
                raise RuntimeError(f"Maven cannot build tests/interop:\n{built.stdout}{built.stderr}")
            os.utime(classpath)
        self.classpath = f"{target / 'classes'}{os.pathsep}{classpath.read_text().strip()}"

    def run(self, *commands: list[object]) -> None:
        """One Java process for all of these commands."""
        self._runs += 1
        script = self._work / f"commands-{self._runs}"
        script.write_text("\n".join("\t".join(str(word) for word in command) for command in commands), "utf-8")
        self.program("StoreDoor", script)

    def program(self, name: str, *arguments: object, seconds: int = RUN_SECONDS, home: Path | None = None) -> None:
        """Run one of the compiled programs to its end; it keeps logs and offsets of its own in ``home``."""
        command = self.command(name, *arguments, home=home)
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=self._work)
        if ran.returncode:
            raise RuntimeError(f"{name} failed ({ran.returncode}):\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}")

    def command(self, name: str, *arguments: object, home: Path | None = None) -> list[str]:
        """The command line of one of the compiled programs."""
        opened = [word for module in OPENED for word in ("--add-opens", f"{module}=ALL-UNNAMED")]
        java = ["java", *opened, "-XX:+UseSerialGC", "-Xmx1g", f"-Duser.home={home or self._work}"]
        return [*java, "-cp", self.classpath, name, *map(str, arguments)]

    def ask(self, verb: str, directory: Path, *words: object) -> Any:
        """One command with an answer."""
        answer = self._work / f"answer-{self._runs}.json"
        self.run([verb, directory, answer, *words])
        return json.loads(answer.read_text("utf-8"))
