import pytest
import torch

from runtime.errors import ConfigError
from runtime.layout import Layout
from runtime.pools.device import DevicePool
from runtime.pools.host import HostPool

LAYOUT = Layout(layers=2, kv_heads=3, head_dim=4, page_size=8, dtype="float32")


def state(tokens: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(2, 2, 3, tokens, 4).to(dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
def test_what_is_written_to_scattered_pages_reads_back_bitwise(dtype):
    layout = Layout(2, 3, 4, 8, dtype)
    pool = DevicePool(layout, 10, "cpu")
    computed = state(32, layout.torch_dtype)
    pool.write([(7, 2), (1, 1), (4, 1)], computed)
    again = pool.read([(7, 2), (1, 1), (4, 1)])
    assert torch.equal(again.view(torch.uint8), computed.view(torch.uint8))


def test_a_state_that_is_not_contiguous_is_written_right():
    pool = DevicePool(LAYOUT, 4, "cpu")
    whole = state(40)
    part = whole[:, :, :, 8:24]
    assert not part.is_contiguous()
    pool.write([(2, 2)], part)
    assert torch.equal(pool.read([(2, 2)]), part)


def test_a_page_is_one_contiguous_piece_in_page_shape():
    pool = DevicePool(LAYOUT, 4, "cpu")
    computed = state(8)
    pool.write([(3, 1)], computed)
    assert bytes(pool.page(3)) == computed.contiguous().numpy().tobytes()
    assert torch.equal(pool.state[3], computed)


def test_what_is_read_is_a_copy():
    pool = DevicePool(LAYOUT, 2, "cpu")
    pool.write([(0, 1)], state(8))
    before = pool.read([(0, 1)])
    kept = before.clone()
    pool.write([(0, 1)], state(8))
    assert torch.equal(before, kept)


def test_nothing_read_is_a_state_of_no_tokens():
    assert DevicePool(LAYOUT, 2, "cpu").read([]).shape == (2, 2, 3, 0, 4)


def test_page_bytes_are_the_memory_itself():
    pool = HostPool(LAYOUT, 2)
    pool.page(1)[5] = 77
    assert int(pool.bytes[1, 5]) == 77
    pool.flip(1, 5)
    assert pool.page(1)[5] == 77 ^ 0xFF


def test_a_pool_without_pages_is_refused():
    with pytest.raises(ConfigError, match="0 pages"):
        HostPool(LAYOUT, 0)
