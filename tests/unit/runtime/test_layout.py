import subprocess
import sys

import pytest
import torch

from runtime.errors import LayoutError
from runtime.layout import ITEM_BYTES, Layout

LAYOUT = Layout(layers=3, kv_heads=2, head_dim=4, page_size=8, dtype="float32")


def test_page_bytes_are_the_bytes_of_the_page_shape():
    for dtype in ITEM_BYTES:
        layout = Layout(3, 2, 4, 8, dtype)
        page = torch.empty(layout.page_shape, dtype=layout.torch_dtype)
        assert layout.page_bytes == page.nbytes


def test_tokens_are_counted_in_a_state_of_this_layout():
    assert LAYOUT.tokens_of(torch.zeros(3, 2, 2, 21, 4)) == 21


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (torch.zeros(3, 2, 2, 21, 4, dtype=torch.float16), "float16"),
        (torch.zeros(3, 2, 2, 21, 5), "[3, 2, 2, 21, 5]"),
        (torch.zeros(4, 2, 2, 21, 4), "[4, 2, 2, 21, 4]"),
        (torch.zeros(3, 2, 2, 4), "[3, 2, 2, 4]"),
        ([[1.0]], "list"),
    ],
)
def test_a_state_of_another_layout_is_refused_with_what_it_is(state, said):
    with pytest.raises(LayoutError) as error:
        LAYOUT.tokens_of(state)
    assert said in str(error.value)


@pytest.mark.parametrize("field", ["layers", "kv_heads", "head_dim", "page_size"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "4"])
def test_a_geometry_that_is_not_whole_and_positive_is_refused(field, value):
    with pytest.raises(LayoutError, match=field):
        Layout(**{**vars(LAYOUT), field: value})


def test_an_unknown_dtype_is_refused():
    with pytest.raises(LayoutError, match="complex64"):
        Layout(1, 1, 1, 1, "complex64")


def test_layouts_that_differ_in_anything_have_different_identities():
    others = [{"layers": 4}, {"kv_heads": 3}, {"head_dim": 5}, {"page_size": 16}]
    layouts = [Layout(**{**vars(LAYOUT), **other}) for other in [{}, *others, {"dtype": "int8"}]]
    assert len({layout.identity for layout in layouts}) == len(layouts)


def test_layout_and_package_load_without_torch():
    script = (
        "import sys, runtime, runtime.errors, runtime.layout\n"
        "heavy = {'torch', 'numpy', 'zmq', 'runtime._core'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
