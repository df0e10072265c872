"""Units whose last bytes were never written: what a power cut leaves where there is no check sum.

RocketMQ accepts such units: its CRC covers the body alone. Lab 01 cuts the power within one.

    ├ fixed fields ┼ body ✓ CRC ┼ topic ┼ properties: KEYS 01 k1 02 TAGS 01 Ta│000000000000 ┤
                                                                             page border

Left out: zeros inside a property with written bytes after them on the same page: they may be part of a value.
"""

from __future__ import annotations

from mqlab.rocketmq.ports import OS_PAGE_SIZE
from mqlab.rocketmq.wire.record_layout import measure


def is_torn(view: memoryview, at: int, size: int) -> bool:
    """Whether the end of a unit looks unwritten, where no check sum covers it: zeros in its topic, at the end of its
    properties, or all over the properties' part of a page."""
    shape = measure(view, at, at + size)
    properties_at, end = shape.properties_at, at + size
    # 1. A topic has no zero byte, and the last byte of the properties is never zero.
    if b"\0" in bytes(view[shape.topic_at : shape.topic_end]):
        return True
    if properties_at == end:
        return False
    if not view[end - 1]:
        return True
    # 2. A page that was not written is all zeros, even if the page after it was written.
    borders = range(properties_at - properties_at % OS_PAGE_SIZE + OS_PAGE_SIZE, end, OS_PAGE_SIZE)
    starts = [properties_at, *borders]
    return any(not any(view[start:stop]) for start, stop in zip(starts, [*borders, end], strict=True) if borders)
