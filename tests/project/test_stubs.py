"""The committed stub of the compiled module is the generated one."""

from tools.make_stubs import STUB, stub_text


def test_stub_is_up_to_date():
    assert STUB.read_text() == stub_text(), "run `python tools/make_stubs.py`"
