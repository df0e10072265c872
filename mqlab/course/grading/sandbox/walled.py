"""Where a worker runs: behind bubblewrap, or (unsafely, when asked for) as a mere process of its own.

The instructor's guide explains the levels.

    bwrap     no network, no sight of other processes, a read-only system, 64 MB of scratch space, never root
    process   another process with limits, and nothing else: it can read and write what the grader can

The system, Python, mqlab without its judges and the folders named readable are all there is behind bubblewrap: no home,
no submissions, no solutions. ``probe`` starts a worker in place and lets it try what it must not be able to do.
It starts no container or virtual machine: for a second wall, run the whole command in one.
"""

from __future__ import annotations

import functools
import glob
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mqlab.course.grading.sandbox.covers import CASES, own_judges
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.material import PACKAGE
from mqlab.errors import MqlabError

WORKER = ["-P", "-s", "-B", "-m", "mqlab.course.grading.sandbox.worker"]
PROBE_SECONDS = 60
NOTHING: Mapping[Path, Path] = {}
SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/nix/store",
)
JAVA_SETTINGS = "/etc/java-*-openjdk"  # Debian's Java cannot start without them
SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM of an answer lives for a minute: the second compiler would take a quarter of its time and never pay."""
OWN_FILES = {
    "passwd": "learner:x:{user}:{user}:learner:/tmp:/bin/sh\n",
    "hosts": "127.0.0.1 localhost\n",
}
FIRST_USER = 1_000_000_000
"""User ids from here on belong to no account; a grader that is root gives each of its jobs one."""


class SandboxUnavailable(MqlabError):
    """This machine has no safe place to run answers; the hint explains how to get one."""

    code = "sandbox"


def own_user_id() -> int:
    """The user id of this process's workers: its own, or an unused one if this process runs as root."""
    return os.geteuid() or FIRST_USER + os.getpid()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How to start a worker. ``level`` is "bwrap" or "process"; paths are absolute.

    ``readable`` folders are seen at their own place; ``hidden`` ones, and files, are covered when something readable
    holds them. Of ``handing``, the judge's temporary folder, an answer sees what a call hands over. ``hash_seed`` is
    what hash() of a text follows from.
    """

    level: str
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    handing: str = ""
    limits: Limits = field(default_factory=Limits)
    user_id: int = field(default_factory=own_user_id)
    hash_seed: int = 0

    def command(
        self, folder: str, arguments: tuple[str, ...] = (), instead: Mapping[Path, Path] = NOTHING
    ) -> list[str]:
        """The command line that starts a worker. ``folder`` is one of the caller's, for files that it needs.

        ``instead``: files and folders that the worker sees in the place of others; see
        mqlab.course.grading.sandbox.withheld.
        """
        worker = [sys.executable, *WORKER, *arguments]
        return worker if self.level == "process" else [*self._walls(Path(folder), instead), "--", *worker]

    def environment(self) -> dict[str, str]:
        """The worker's environment variables; none of the grader's own are in it."""
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": "/tmp",
            "USER": "learner",
            "LOGNAME": "learner",
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": str(self.hash_seed),
            "PYTHONPATH": str(PACKAGE.parent),
            "OPENBLAS_NUM_THREADS": "1",
            "JDK_JAVA_OPTIONS": SHORT_LIVED_JAVA,
            **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
        }

    @property
    def drops_root(self) -> bool:
        """True if the grader is root: its rights build the walls, and the worker gives them up before it begins."""
        return os.geteuid() == 0

    def _walls(self, own: Path, instead: Mapping[Path, Path]) -> list[str]:
        # 1. Namespaces of its own: no network, no other processes. Root keeps only the rights to become another user.
        words = ["bwrap", "--die-with-parent", "--new-session", "--clearenv"]
        if self.drops_root:
            words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
            words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        else:
            words += ["--unshare-all", "--unshare-user", *_if_known("--disable-userns")]
        for name, value in self.environment().items():
            words += ["--setenv", name, value]
        # 2. The system, read-only.
        words += ["--perms", "0755", "--dir", "/etc", "--ro-bind", "/usr", "/usr"]
        for folder in SYSTEM_FOLDERS:
            if os.path.islink(folder):
                words += ["--symlink", os.readlink(folder), folder]
            elif os.path.isdir(folder):
                words += ["--ro-bind", folder, folder]
        for path in (*SYSTEM_FILES, *sorted(glob.glob(JAVA_SETTINGS))):
            words += ["--ro-bind-try", path, path]
        for name, text in OWN_FILES.items():  # Java looks up the names of the user and the host
            (own / name).write_text(text.format(user=self.user_id), "ascii")
            words += ["--ro-bind", str(own / name), f"/etc/{name}"]
        words += ["--hostname", "localhost"]
        words += ["--proc", "/proc", "--dev", "/dev"]
        # 3. The only place to write is a small /tmp in memory.
        words += ["--perms", "1777", *_if_known("--size", str(self.limits.scratch_mb << 20)), "--tmpfs", "/tmp"]
        # 4. Python, mqlab and readable folders, read-only; then empty folders over what is hidden inside them.
        shown = (*python_folders(), str(PACKAGE), *self.readable)
        for folder in _parents((*shown, *filter(None, [self.handing]))):
            words += ["--perms", "0755", "--dir", folder]
        for path in shown:
            words += ["--ro-bind", path, path]
        for path in self._covered():
            words += ["--tmpfs", path, "--remount-ro", path] if os.path.isdir(path) else ["--ro-bind", os.devnull, path]
        for covered, other in instead.items():
            words += ["--ro-bind", str(other), str(covered)]
        # 5. Files that cases hand over appear under their own names, from a mirror.
        if self.handing:
            words += ["--ro-bind", str(mirror_in(own)), self.handing]
        # 6. A readable folder may lie below /dev, in memory: so nothing is closed before it is there.
        return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]

    def _covered(self) -> list[str]:
        """The judges, and everything else that is hidden but inside a readable folder."""
        seen = [Path(path) for path in ("/usr", *python_folders(), *self.readable)]
        hidden = [Path(path) for path in self.hidden if os.path.exists(path)]
        through = [str(_whole_copy(path)) for path in hidden if any(path.is_relative_to(root) for root in seen)]
        return list(dict.fromkeys([own_judges(), *through]))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Sandbox:
        return cls(
            level=data["level"],
            readable=tuple(data["readable"]),
            hidden=tuple(data["hidden"]),
            handing=data["handing"],
            limits=Limits.of(data["limits"]),
            user_id=data["user_id"],
        )


def _whole_copy(judges: Path) -> Path:
    """A copy of mqlab that holds these judges, if it is not the one that runs: of it, answers need nothing."""
    of_a_package = judges.parts[-len(CASES.parts) :] == CASES.parts
    copy = judges.parents[len(CASES.parts) - 2] if of_a_package else judges
    return judges if copy == PACKAGE else copy


def python_folders() -> list[str]:
    """The virtual environment and the Python it was made of, outermost first, none below another or below /usr."""
    real = Path(sys.executable).resolve()
    wanted = {sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix), str(real.parent.parent)}
    folders: list[str] = []
    for folder in sorted(wanted, key=len):
        if not any(Path(folder).is_relative_to(outer) for outer in ("/usr", *folders)):
            folders.append(folder)
    return folders


def mirror_in(folder: Path) -> Path:
    """The folder, inside a worker's own folder, that mirrors the files handed over to it."""
    mirror = folder / "handed"
    mirror.mkdir(exist_ok=True)
    return mirror


def _parents(paths: Iterable[str]) -> list[str]:
    """The folders above some paths, outermost first. Those that bubblewrap makes itself, only their owner can enter."""
    above = {str(parent) for path in paths for parent in Path(path).parents} - {"/", "/tmp", "/usr"}
    return sorted(above)


@functools.cache
def _bwrap_options() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False).stdout


def _if_known(option: str, *values: str) -> list[str]:
    return [option, *values] if f"{option} " in _bwrap_options() or f"{option}\n" in _bwrap_options() else []


def probe(sandbox: Sandbox, forbidden: tuple[str, ...] = ()) -> None:
    """Start a worker behind the walls and let it try them. SandboxUnavailable gives the failure and the remedy."""
    # 1. What must be there before bubblewrap can be started.
    if sandbox.level != "bwrap":
        return
    if platform.system() != "Linux":
        raise SandboxUnavailable(
            f"answers cannot be walled in on {platform.system()}: bubblewrap runs on Linux only", hint=_ways_out("")
        )
    if shutil.which("bwrap") is None:
        raise SandboxUnavailable(
            "bubblewrap (bwrap) is not installed; without it a submission could read and change your files",
            hint=_ways_out("install it: sudo apt-get install bubblewrap, or sudo dnf install bubblewrap;"),
        )
    # 2. Start a worker as for an answer, but let it try the walls.
    try:
        with tempfile.TemporaryDirectory(prefix="mqlab-answers-") as folder:
            done = subprocess.run(
                sandbox.command(folder, ("--probe", str(sandbox.user_id), *forbidden)),
                capture_output=True,
                text=True,
                timeout=PROBE_SECONDS,
                stdin=subprocess.DEVNULL,
                check=False,
            )
    except subprocess.TimeoutExpired as error:
        raise SandboxUnavailable(f"a worker did not start in {PROBE_SECONDS} s", hint=_ways_out("")) from error
    # 3. Silence is not success: only the expected text is.
    if done.returncode != 0 or done.stdout.strip() != "walled in":
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise SandboxUnavailable(f"bubblewrap does not hold here: {said}", hint=_ways_out(_cause(done.stderr)))


def _cause(said: str) -> str:
    if "uid map" in said or ("Permission denied" in said and "namespace" in said) or "Creating new namespace" in said:
        return (
            "user namespaces are restricted (Ubuntu 24.04 does so by AppArmor): give bwrap a profile with `userns,` in "
            "/etc/apparmor.d, or run sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0;"
        )
    if "Operation not permitted" in said or "pivot_root" in said:
        return "this looks like a container: grade on the machine itself, or start it with --privileged;"
    return ""


def _ways_out(first: str) -> str:
    return (
        f"{first} grade on a Linux machine or in a virtual machine; or, if you trust every submission, "
        "add --unsafe-no-sandbox: it separates processes only, and an answer can then read the judges with their right "
        "answers, and read and change your files"
    ).strip()
