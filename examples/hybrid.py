"""A hybrid model's pages: full attention, a sliding window and recurrent state, in one tree.

`python examples/hybrid.py` plays two requests that share a prompt and shows, for each, how far each
kind of state could be resumed. No tensors here: an engine puts its state where the runs say.
"""

from array import array

from runtime._core import Component, Core

PAGE = 16  # tokens


def main() -> None:
    core = Core(
        engine="example",
        epoch="1",
        namespace="qwen3-next@r1",
        page_size=PAGE,
        device=64,
        components=[
            Component("swa", "swa", window=4 * PAGE, device=32),
            Component("mamba", "mamba", interval=8, device=8),
            Component("indexer", "sidecar", follows="full", device=64),
        ],
    )
    core.open_session(0, "planner")
    core.open_session(0, "reviewer", parent="planner")

    prompt = array("I", range(20 * PAGE))
    serve(core, 1, "planner", prompt)
    # The reviewer leaves the prompt after 13 of its 20 pages: full attention could go on from
    # there, recurrent state only from its checkpoint after 8.
    fork = prompt[: 13 * PAGE] + array("I", range(1000, 1000 + 7 * PAGE))
    serve(core, 2, "reviewer", fork)
    # It made a checkpoint where the two part, so the next one to leave there resumes at 13.
    again = prompt[: 13 * PAGE] + array("I", range(2000, 2000 + 7 * PAGE))
    serve(core, 3, "planner", again)
    core.check()


def serve(core: Core, now: int, session: str, tokens: "array[int]") -> None:
    """Match, compute what is missing, commit, let go."""
    found = core.acquire(now, session, f"request-{now}", tokens)
    print(f"{session}: resumes at page {found.pages}; full alone had {found.full_pages}", end="")
    print(f", {found.clipped_by} had less" if found.clipped_by else "")
    missing = len(tokens) // PAGE - found.pages
    grant = core.reserve(now, found.receipt, missing)
    for component, _, first, count, position in grant.parts:
        if component == "mamba":
            print(f"  write the state after page {position} to {component} page {first}")
        else:
            last = position + count - 1
            print(f"  write pages {position}..{last} to {component} pages {first}..")
    core.commit(now, grant.op, tokens, found.pages, missing)
    core.release(now, found.receipt)


if __name__ == "__main__":
    main()
