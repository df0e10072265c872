"""Every configuration file of the real broker, read and written again."""

from __future__ import annotations

import pytest

from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store import config_texts
from mqlab.rocketmq.store.config_files import ConfigFile

NAMES = ["topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json", "consumerFilter.json"]


@pytest.mark.parametrize("store", ["clean", "killed"])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_text_comes_out(unpacked_stores, store, name):
    text = (unpacked_stores / store / "config" / name).read_text("utf-8")
    values = config_texts.decode(name, text)
    again = config_texts.encode(name, values)
    if (store, name) == ("killed", "consumerOffset.json"):  # a broker that loaded its offsets has a map of another size
        assert config_texts.decode(name, again) == values
        assert sorted(again.replace(",\n", "\n")) == sorted(text.replace(",\n", "\n"))
    else:
        assert again == text


@pytest.mark.parametrize("name", NAMES)
def test_a_brokers_file_is_loaded_and_saved_as_it_was(real_store, name):
    folder = real_store("clean") / "config"
    before = (folder / name).read_bytes()
    file = ConfigFile(RealFiles(), str(folder / name))
    text = file.load()
    assert text is not None and text.encode() == before
    file.save(text)
    assert (folder / name).read_bytes() == (folder / f"{name}.bak").read_bytes() == before
