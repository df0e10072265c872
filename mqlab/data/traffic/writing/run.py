"""A run: several brokers' stores in one directory, finished or resumed, and the truth next to it.

    DIR/traffic.json        the request and the result: command, counts, fingerprints; not the incidents
    DIR/broker-a/ ...       store directories, as a broker that was stopped leaves them
    DIR.truth.json          the incidents, for an instructor; next to DIR, so that DIR can be given to students

    while it runs: DIR/traffic.unfinished.json, and DIR/.broker-b.unfinished for the store being made. A store gets its
    name when it is complete. The same command again resumes the run with the first store that is missing.

A sealed run (see trouble.capstone) has DIR/incident.json instead, which tells neither seal nor model, and no truth.

Left out: resuming within a store; each is written from its start.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mqlab.counts import counted
from mqlab.data.traffic.model import ON_REQUEST, Asked, TrafficModel
from mqlab.data.traffic.trouble.incidents import incidents_of
from mqlab.data.traffic.writing.broker_store import BrokerStore
from mqlab.data.traffic.writing.closing_files import BrokerSummary
from mqlab.errors import StoreError, UsageError
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.whole_files import whole_file

VERSION = 1
DONE, UNFINISHED, LOCK = "traffic.json", "traffic.unfinished.json", ".traffic.lock"
SEALED_DONE, SEALED_UNFINISHED = "incident.json", "incident.unfinished.json"
_BYTES_PER_MESSAGE = 950

Progress = Callable[[int], object]
RunBrokers = Callable[[Asked, Sequence[tuple[int, str]], Progress], Iterator[tuple[int, BrokerSummary]]]
"""Writes stores (broker number, directory) in any order and yields each as it is done."""


@dataclass(frozen=True, slots=True)
class TrafficSummary:
    """A finished run: its directory, the request, the contents of each broker's store, and the file of the truth."""

    directory: Path
    asked: Asked
    brokers: tuple[BrokerSummary, ...]
    truth: Path

    @property
    def stores(self) -> dict[str, Path]:
        """Broker name -> store directory."""
        return {broker.name: self.directory / broker.name for broker in self.brokers}

    @property
    def topics(self) -> dict[str, int]:
        """Topic -> messages in all stores, the most first."""
        counts: dict[str, int] = {}
        for broker in self.brokers:
            for topic, count in broker.topics.items():
                counts[topic] = counts.get(topic, 0) + count
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @property
    def log_bytes(self) -> int:
        return sum(broker.log_bytes for broker in self.brokers)

    def __repr__(self) -> str:
        asked = self.asked
        return (
            f"<traffic {self.directory}: {asked.messages:,} messages, {self.log_bytes:,} bytes, "
            f"{counted(asked.brokers, 'brokers')}, seed {asked.seed}>"
        )


def write(
    directory: str | os.PathLike[str],
    *,
    messages: int,
    brokers: int = 1,
    seed: int = 7,
    truth: str | os.PathLike[str] | None = None,
    model: TrafficModel | None = None,
    progress: Progress = lambda units: None,
    run: RunBrokers | None = None,
    **changes: Any,
) -> TrafficSummary:
    """Write a day of traffic: ``messages`` stored messages altogether, spread over ``brokers`` store directories.

    ``truth``: the file of the incidents (default: next to the directory). ``changes`` are fields of TrafficModel,
    such as ``index=True`` or ``incidents=("hot_key",)``. ``progress`` is called with numbers of messages written.
    An interrupted run is resumed; a finished one is only read. Raises UsageError for a directory that holds anything
    else, StoreError when the disk is too small.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/day", messages=2_000, commit_log_bytes=1 << 20).topics["orders"] > 900
    True
    """
    asked = Asked(messages, brokers, seed, (model or TrafficModel()).changed(**changes))
    incidents_of(asked)  # raises before anything is written
    target = Path(directory)
    truth_file = Path(truth) if truth is not None else target.with_name(target.name + ".truth.json")
    # The directory is given to students, and the truth must not be in it.
    if target.resolve() in truth_file.resolve().parents:
        raise UsageError(
            f"the list of incidents would be inside {target}", hint="students get that directory; choose another place"
        )
    summaries = _Run(asked, target, truth_file).finish(progress, run or one_after_the_other)
    return TrafficSummary(target, asked, summaries, truth_file)


def write_sealed(asked: Asked, directory: Path, mark: str, progress: Progress = lambda units: None) -> dict[str, Path]:
    """Write a sealed run, or what is missing of it, without its truth: broker name -> store.

    ``mark`` names the run in its record: two runs with different marks are different runs.
    """
    summaries = _Run(asked, directory, None, mark).finish(progress, one_after_the_other)
    return {broker.name: directory / broker.name for broker in summaries}


def one_after_the_other(
    asked: Asked, missing: Sequence[tuple[int, str]], progress: Progress
) -> Iterator[tuple[int, BrokerSummary]]:
    """Write the stores in this process."""
    for broker, directory in missing:
        yield broker, make_store(asked, broker, directory, progress)


def make_store(asked: Asked, broker: int, directory: str, progress: Progress = lambda units: None) -> BrokerSummary:
    """Write one broker's store; a directory that exists is replaced. Other processes can run it."""
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    return BrokerStore(asked, broker, directory).write(progress)


class _Run:
    """One call of ``write`` or ``write_sealed``; ``truth`` is None for the latter."""

    def __init__(self, asked: Asked, directory: Path, truth: Path | None, mark: str = "") -> None:
        self.asked, self.directory, self.truth = asked, directory, truth
        self._done, self._unfinished = (SEALED_DONE, SEALED_UNFINISHED) if mark else (DONE, UNFINISHED)
        self._public = _asked_value(asked)
        self._incidents = self._public["model"].pop("incidents")
        if mark:
            self._public = {"version": VERSION, "messages": asked.messages, "brokers": asked.brokers, "mark": mark}

    def finish(self, progress: Progress, run: RunBrokers) -> tuple[BrokerSummary, ...]:
        """Make the stores that are missing; all of them, by their numbers."""
        done = self._finished()
        for broker in done.values():
            progress(broker.messages)
        # A finished run is only read: it needs neither room nor the lock.
        if done.keys() < set(range(self.asked.brokers)):
            self._must_have_room(len(done))
            self.directory.mkdir(parents=True, exist_ok=True)
            with self._alone():
                self._make(done, progress, run)
        return tuple(done[number] for number in range(self.asked.brokers))

    def _make(self, done: dict[int, BrokerSummary], progress: Progress, run: RunBrokers) -> None:
        self._save(self._unfinished, done)
        names = {number: self.asked.broker_name(number) for number in range(self.asked.brokers)}
        missing = [(n, str(self.directory / f".{name}.unfinished")) for n, name in names.items() if n not in done]
        written_in = dict(missing)
        # Each store gets its name when it is whole; truth and record follow, so that an interrupt can be resumed.
        for number, summary in run(self.asked, missing, progress):
            final = self.directory / names[number]
            shutil.rmtree(final, ignore_errors=True)  # complete, but the run was interrupted before it was recorded
            os.rename(written_in[number], final)
            done[number] = summary
            self._save_truth(done)
            self._save(self._unfinished, done)
        self._save(self._done, done)
        (self.directory / self._unfinished).unlink()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the directory against other runs. Raises UsageError when another run is writing into it."""
        path = self.directory / LOCK
        try:
            lock = RealFiles().lock(str(path))
        except StoreError:
            raise UsageError(f"another run is writing into {self.directory}", hint="wait for it") from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            lock.release()

    def _finished(self) -> dict[int, BrokerSummary]:
        """The complete stores of this very run. Raises UsageError when the directory holds anything else."""
        if not self.directory.exists() or (self.directory.is_dir() and not any(self.directory.iterdir())):
            self._recorded_truth()
            return {}
        names = (self._done, self._unfinished)
        notes = [self.directory / name for name in names if (self.directory / name).is_file()]
        if not notes:
            raise UsageError(
                f"{self.directory} is not empty and was not made by mqlab traffic",
                hint="give another directory, or remove this one yourself",
            )
        # The result of another request must not be mixed with this one's.
        noted = _read(notes[0])
        repeat = f"repeat the command of that run: {noted['command']}" if "command" in noted else "remove this one"
        _must_be(self._public, noted.get("asked"), self.directory, repeat)
        return self._whole(noted, self._recorded_truth(), is_done=notes[0].name == self._done)

    def _recorded_truth(self) -> dict[str, Any] | None:
        """The contents of the file of the truth, if it exists. Raises UsageError when it is not this run's truth."""
        if self.truth is None or not self.truth.exists():
            return None
        truth = _read(self.truth)
        public = truth.get("public")
        recorded = {**public, "incidents": truth.get("incidents")} if isinstance(public, dict) else None
        _must_be({**self._public, "incidents": self._incidents}, recorded, self.truth, "remove that file")
        return truth

    def _whole(self, noted: dict[str, Any], truth: dict[str, Any] | None, *, is_done: bool) -> dict[int, BrokerSummary]:
        """Stores that are recorded and present; in an unfinished run their incidents must be recorded, too."""
        brokers, incidents = noted.get("brokers", {}), (truth or {}).get("brokers", {})
        whole = {}
        for number in range(self.asked.brokers):
            name = self.asked.broker_name(number)
            # A crash may come between truth and record; in an unfinished run a store needs both.
            is_recorded = name in brokers and (is_done or self.truth is None or name in incidents)
            if is_recorded and (self.directory / name).is_dir():
                whole[number] = BrokerSummary(**brokers[name], truth=incidents.get(name, []))
        return whole

    def _must_have_room(self, done: int) -> None:
        parent = next(p for p in (self.directory, *self.directory.absolute().parents) if p.exists())
        needed = self.asked.messages * _BYTES_PER_MESSAGE * (self.asked.brokers - done) // self.asked.brokers
        free = shutil.disk_usage(parent).free
        if free < needed:
            raise StoreError(
                f"the disk of {self.directory} has {free:,} bytes free, about {needed:,} are needed",
                hint="ask for fewer messages, or for a directory on another disk",
            )

    def _save(self, name: str, done: dict[int, BrokerSummary]) -> None:
        brokers = {}
        for number in sorted(done):
            value = asdict(replace(done[number], truth=[]))
            del value["truth"]
            brokers[done[number].name] = value
        command = {} if self.truth is None else {"command": _command(self.asked)}
        value = {"version": VERSION, **command, "asked": self._public, "brokers": brokers}
        _replace(self.directory / name, value)

    def _save_truth(self, done: dict[int, BrokerSummary]) -> None:
        if self.truth is None:
            return
        self.truth.parent.mkdir(parents=True, exist_ok=True)
        incidents = {done[number].name: done[number].truth for number in sorted(done)}
        _replace(self.truth, {"public": self._public, "incidents": self._incidents, "brokers": incidents})


def _asked_value(asked: Asked) -> dict[str, Any]:
    fields = asdict(asked)
    del fields["seal"]
    # What a day has only when it is asked for is not mentioned otherwise: runs of earlier versions stay the same runs.
    fields["model"] = {name: v for name, v in fields["model"].items() if name not in ON_REQUEST or v}
    value: dict[str, Any] = json.loads(json.dumps(fields))
    return {"version": VERSION, **value}


def _must_be(asked: dict[str, Any], was_asked: Any, where: Path, way_out: str) -> None:
    if was_asked == asked:
        return
    was = was_asked if isinstance(was_asked, dict) else {}
    differing = sorted(name for name in asked if was.get(name) != asked[name])
    raise UsageError(
        f"{where} belongs to another run: it differs in {', '.join(differing)}",
        hint=f"give another directory, or {way_out}",
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="remove the directory and start again") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} was not written by mqlab traffic", hint="remove the directory and start again")
    return value


def _command(asked: Asked) -> str:
    """The command line of this run, without incidents that were chosen by hand."""
    words = f"mqlab traffic --messages {asked.messages:_} --brokers {asked.brokers} --seed {asked.seed}"
    usual = TrafficModel()
    words += " --index" * asked.model.index
    words += "".join(f" --{name}" for name in ON_REQUEST if getattr(asked.model, name))
    for name in asked.model.__dataclass_fields__:
        value = getattr(asked.model, name)
        if name not in ("index", "incidents", *ON_REQUEST) and value != getattr(usual, name):
            words += f" --set {name}={value}"
    return words + " --out DIR"


def _replace(path: Path, value: dict[str, Any]) -> None:
    """Write JSON so that a crash leaves the old or the new text."""
    with whole_file(path, suffix=".tmp") as draft, open(draft, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
