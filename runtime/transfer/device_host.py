"""Device and host: backup goes down, load comes back."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from canary import Mode
from runtime.pools.device import DevicePool
from runtime.pools.host import HostPool
from runtime.transfer.copy import copy_pages
from runtime.transfer.pipeline import ABSENT, ARRIVED, Completion, Pipeline, pages_of

if TYPE_CHECKING:
    from runtime._core import Action


class DeviceHostPipeline(Pipeline):
    """Both hops are checked on the host's copy: after a backup, before a load. No kernel is
    needed for that."""

    kinds = ("backup", "load")

    def __init__(
        self, device: DevicePool, host: HostPool, done: Callable[[Completion], None], mode: Mode
    ) -> None:
        self._device = device
        self._host = host
        self._stream = torch.cuda.Stream(device.state.device) if device.state.is_cuda else None
        super().__init__(done, device.layout.page_size, mode)

    def _prepare(self, action: "Action") -> object:
        """On CUDA, an event after the engine's writes: the copy must not overtake them."""
        return torch.cuda.current_stream().record_event() if self._stream else None

    def _move(self, done: Completion, prepared: Any) -> None:
        action = done.action
        if action.kind == "backup":
            self._copy(self._host, self._device, action, prepared)
            for index, (_, page) in enumerate(pages_of(action)):
                self._check(done, index, self._host, page, "device")
        else:
            for index, (page, _) in enumerate(pages_of(action)):
                self._check(done, index, self._host, page, "host")
            self._copy(self._device, self._host, action, prepared)
        for index, result in enumerate(done.results):
            if result == ABSENT:
                done.results[index] = ARRIVED
        done.moved_bytes = done.results.count(ARRIVED) * self._host.layout.page_bytes

    def _copy(
        self,
        destination: DevicePool | HostPool,
        source: DevicePool | HostPool,
        action: "Action",
        ready: Any,
    ) -> None:
        runs = [(a, b, n) for _, a, b, n in action.runs]
        if not self._stream:
            return copy_pages(destination, source, runs)
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(ready)
            copy_pages(destination, source, runs)
        self._stream.synchronize()
