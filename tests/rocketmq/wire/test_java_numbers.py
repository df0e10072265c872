"""Numbers in properties and header fields, as Integer.parseInt and Long.parseLong read them."""

import pytest

from mqlab.rocketmq.remoting.requests import Refused, whole, whole_long, whole_long_or, whole_or
from mqlab.rocketmq.wire.command import request


@pytest.mark.parametrize("text", ["+5", "５", "0005"])
def test_what_java_reads_as_five(text):
    asked = request(34, n=text)
    assert whole(asked, "n") == whole_long(asked, "n") == whole_or(asked, "n", 1) == whole_long_or(asked, "n", 1) == 5


@pytest.mark.parametrize("text", ["", "5 ", "1_0", "5.0", "soon", "𝟓", "9223372036854775808"])
def test_what_is_not_a_number_in_a_header(text):
    asked = request(34, n=text)
    for read in (whole, whole_long):
        with pytest.raises(Refused, match="needs a whole number in the field n"):
            read(asked, "n")
    assert whole_or(asked, "n", 7) == whole_long_or(asked, "n", 7) == 7


def test_an_integer_has_32_bits_and_a_long_64():
    asked = request(34, n="2147483648")
    assert whole_long(asked, "n") == 2147483648
    with pytest.raises(Refused):
        whole(asked, "n")
