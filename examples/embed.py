"""Embed the cache in your own loop, here around a toy of a model."""

import tempfile

import torch

from runtime import FileStore, Layout, TieredCache

LAYOUT = Layout(layers=4, kv_heads=2, head_dim=16, page_size=16, dtype="float32")


def compute(tokens: list[int], start: int) -> torch.Tensor:
    """What a prefill leaves behind: [layers, 2, kv_heads, len(tokens) - start, head_dim]."""
    seen = torch.tensor(tokens, dtype=torch.float32).cumsum(0)[start:]
    return seen[:, None].expand(4, 2, 2, len(seen), 16).contiguous()


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        TieredCache(
            LAYOUT, engine="embed", namespace="toy-1", device_pages=16, host_pages=16,
            storage=FileStore(directory), storage_pages=256,
        ) as cache,
    ):  # fmt: skip
        for turn in range(12):
            session = f"agent-{turn % 4}"
            tokens = [*range(64)] + [turn % 4 + 100] * (32 + turn // 4 * 64)
            with cache.begin(f"request-{turn}", session, tokens) as request:
                cached = request.restore()
                assert torch.equal(request.read(), compute(tokens, 0)[:, :, :, :cached])
                request.write(cached, compute(tokens, cached))
                request.first_token()
            print(f"{session}: {cached:3} of {len(tokens):3} tokens from the cache")
            cache.drain(timeout_s=10)
        print({**cache.stats()["moved"], "damaged pages": cache.stats()["violations"]})


if __name__ == "__main__":
    main()
