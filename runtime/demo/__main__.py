"""The engine's process: bind, load, play, compare, report.

stdout: one JSON object a line, `{"event": …}`:
  hello     engine, epoch, address, requests      the sockets are bound; the model is not loaded yet
  loaded    seconds
  phase     title
  request   n, of, request, session, prompt_tokens, hit_tokens, answer, ttft_s, restore_s
  barrier   session                               waits for the line "go"
  compared  n, of, equal                          the same prompt, answered without any cache
  played                                          steps on, so that operators can act, until "stop"
  result    requests, compared, different, served_ttft_s, plain_ttft_s, seq, state_hash
stdin: "go", "stop". After `result` nothing changes any more; it ends when stdin does or on SIGTERM.
stderr: one line when it fails; the exit status is then 2.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime import models
from runtime.demo import workload
from runtime.demo.conversation import Ask, Conversations
from runtime.demo.orders import STEP_S, Ended, Orders
from runtime.errors import CacheError

if TYPE_CHECKING:
    from runtime.adapters.transformers import Generation, TransformersEngine
    from runtime.cache import TieredCache

LOOPBACK = "tcp://127.0.0.1:*"
SETTLE_S = 10.0
SAMPLE_SEED = 20


@dataclass
class Played:
    ask: Ask
    generation: Generation


def say(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


def play(
    plan: workload.Workload,
    model: models.Model,
    engine: TransformersEngine,
    cache: TieredCache,
    orders: Orders,
) -> list[Played]:
    """Serve the whole workload in its order."""
    talk = Conversations(plan, model.encode)
    played: list[Played] = []
    for phase in plan.phases:
        say("phase", title=phase.title)
        for session in phase.order:
            orders.look()
            ask = talk.ask(session)
            if ask.turn.tool:
                cache.tool(session, "end", ask.turn.tool)
            name = f"r{len(played) + 1}"
            done = engine.generate(name, session, ask.prompt, plan.answer_tokens, parent=ask.parent)
            talk.answered(session, done.tokens)
            played.append(Played(ask, done))
            say(
                "request",
                n=len(played),
                of=plan.requests,
                request=name,
                session=session,
                prompt_tokens=done.prompt_tokens,
                hit_tokens=done.hit_tokens,
                answer=model.decode(done.tokens),
                ttft_s=done.ttft_s,
                restore_s=done.restore_s,
            )
            following = talk.next_turn(session)
            if following and following.tool:
                cache.tool(session, "start", following.tool)
            # Users and tools take seconds; ours take none, so give the moves that time here.
            cache.drain(SETTLE_S)
        if phase.barrier:
            say("barrier", session=plan.story)
            orders.wait("go")
    return played


def compare(
    played: list[Played],
    plan: workload.Workload,
    model: models.Model,
    cache: TieredCache,
    orders: Orders,
) -> list[tuple[Played, Generation]]:
    """Answer prompts again without a cache: all, or a seeded quarter where that takes long."""
    from runtime.adapters.transformers import generate_plain

    if model.name != "tiny":
        quarter = random.Random(SAMPLE_SEED).sample(range(len(played)), len(played) // 4)
        played = [played[index] for index in sorted(quarter)]
    pairs = []
    for each in played:
        orders.look()
        plain = generate_plain(
            model.network,
            each.ask.prompt,
            plan.answer_tokens,
            stop=model.stop_token,
            step=cache.step,
        )
        pairs.append((each, plain))
        equal = plain.tokens == each.generation.tokens
        say("compared", n=len(pairs), of=len(played), equal=equal)
    return pairs


def serve(given: argparse.Namespace, storage: Path) -> None:
    """Bind, load, play, compare, and report."""
    plan = workload.load(given.workload)
    path = models.prepare(given.model, given.workload)

    from runtime.adapters import transformers as adapter
    from runtime.cache import TieredCache
    from runtime.storage.file import FileStore

    pools = plan.pools
    with TieredCache(
        adapter.layout_of(models.config(path), pools.page_tokens),
        engine=f"demo-{given.model}",
        namespace=f"{path.name} grid={adapter.GRID_TOKENS}",
        device_pages=pools.device_pages,
        host_pages=pools.host_pages,
        storage=FileStore(storage),
        storage_pages=pools.storage_pages,
        publish=LOOPBACK,
        replay=LOOPBACK,
        control=LOOPBACK,
    ) as cache:
        orders = Orders(cache)
        at = cache.endpoints
        say(
            "hello",
            engine=f"demo-{given.model}",
            epoch=cache.epoch,
            address=f"{at['publish']},replay={at['replay']},control={at['control']}",
            requests=plan.requests,
        )
        began = time.perf_counter()
        model = models.load(given.model, given.workload)
        say("loaded", seconds=time.perf_counter() - began)

        engine = adapter.TransformersEngine(model.network, cache, stop=model.stop_token)
        pairs = compare(play(plan, model, engine, cache, orders), plan, model, cache, orders)
        say("played")
        orders.wait("stop")
        cache.drain(SETTLE_S)
        say(
            "result",
            requests=plan.requests,
            compared=len(pairs),
            different=[p.ask.session for p, plain in pairs if p.generation.tokens != plain.tokens],
            served_ttft_s=sum(p.generation.ttft_s for p, _ in pairs),
            plain_ttft_s=sum(plain.ttft_s for _, plain in pairs),
            seq=cache.core.seq(),
            state_hash=cache.core.state_hash(),
        )
        while True:
            orders.look()
            time.sleep(STEP_S)


def main() -> int:
    # Read when torch is loaded. Its threads would spin while they wait, and take the cores from the
    # pipelines, the publisher and whatever else runs here: 20 s become 300 s on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    parser = argparse.ArgumentParser(prog="python -m runtime.demo")
    parser.add_argument("--model", choices=models.NAMES, required=True)
    parser.add_argument("--workload", type=Path, required=True)
    given = parser.parse_args()

    def end(*_: object) -> None:
        raise Ended

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        with tempfile.TemporaryDirectory(prefix="kvctl-demo-") as storage:
            serve(given, Path(storage))
    except Ended:
        return 0
    except (CacheError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
