"""The checkpoint file against its bytes in RocketMQ."""

from __future__ import annotations

import pytest

from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store.checkpoint import Checkpoint
from mqlab.rocketmq.store.reading import checkpoint_format as checkpoint_file

HEAD = "0000018bcfe569c8 0000018bcfe56990 0000018bcf4cd180 0000000000000000 00000000001000b1"


def test_bytes_are_those_of_rocketmq(tmp_path):
    path = f"{tmp_path}/checkpoint"
    checkpoint = Checkpoint(RealFiles(), path)
    checkpoint.physic_msg_timestamp = 1700000000456
    checkpoint.logics_msg_timestamp = 1700000000400
    checkpoint.index_msg_timestamp = 1699990000000
    checkpoint.confirm_physical_offset = 1048753
    checkpoint.flush()
    data = RealFiles().read(path)
    assert data[:40] == bytes.fromhex(HEAD)
    assert data[40:] == bytes(4096 - 40)

    again = Checkpoint(RealFiles(), path)
    assert again.confirm_physical_offset == 1048753
    assert again.min_timestamp() == 1700000000400 - 3000
    assert again.min_timestamp_index() == 1699990000000


def test_a_fresh_checkpoint_makes_recovery_start_at_the_oldest_file(tmp_path):
    checkpoint = Checkpoint(RealFiles(), f"{tmp_path}/checkpoint")
    assert checkpoint.min_timestamp() == 0
    checkpoint.flush()
    assert RealFiles().read(f"{tmp_path}/checkpoint") == bytes(4096)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 23, 39, 40, 4095, 4096])
def test_a_cut_file_counts_as_padded_with_zeros_and_is_made_whole(tmp_path, length):
    path = tmp_path / "checkpoint"
    path.write_bytes((bytes.fromhex(HEAD) + bytes(4056))[:length])
    checkpoint = Checkpoint(RealFiles(), str(path))
    assert checkpoint.min_timestamp() <= 1700000000400 - 3000
    checkpoint.flush()
    assert path.stat().st_size == 4096
    assert checkpoint_file.decode(path.read_bytes())["physic_msg_timestamp"] == checkpoint.physic_msg_timestamp


def test_flush_writes_and_syncs_only_what_changed(tmp_path):
    files = RealFiles()
    path = f"{tmp_path}/checkpoint"
    checkpoint = Checkpoint(files, path)
    checkpoint.flush()
    stamp = (tmp_path / "checkpoint").stat().st_mtime_ns
    checkpoint.flush()
    assert (tmp_path / "checkpoint").stat().st_mtime_ns == stamp
    assert "physic_msg_timestamp=0" in repr(checkpoint)
