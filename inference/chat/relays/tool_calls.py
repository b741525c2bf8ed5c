"""Rewrites the fragments of streamed tool calls: dense indexes, one id and one name for each call."""

from __future__ import annotations

from inference.chat.meter import Meter
from inference.chat.relays import call_id
from inference.wire.answers import FunctionFragment, ToolCallFragment
from svc_project.lib.errors import BackendProtocolError


class ToolCalls:
    """The tool calls of one stream; true once there is one."""

    __slots__ = ("_by_id", "_by_index", "_meter")

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._by_index: dict[int, int] = {}
        self._by_id: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._by_index)

    def edit(self, fragments: list[ToolCallFragment]) -> None:
        """Rewrite ``fragments`` in place and count their text.

        Raises ``BackendProtocolError`` for a call without a name.
        """
        meter = self._meter
        for fragment in fragments:
            function = fragment.function or FunctionFragment()
            index, first = self._index_of(fragment)
            if first:
                if not function.name:
                    raise BackendProtocolError("The model server sent a tool call without a name.")
                fragment.id = fragment.id or call_id(meter, index)
                fragment.type = "function"
                function.arguments = function.arguments or ""
                meter.take_text(function.name)
            else:
                fragment.id = fragment.type = function.name = None
            if function.arguments:
                meter.take_text(function.arguments)
            fragment.index = index
            fragment.function = function
        meter.mark_first_token()

    def _index_of(self, fragment: ToolCallFragment) -> tuple[int, bool]:
        """Return the dense index of a fragment's call, and whether it is the call's first one."""
        if fragment.index is not None:
            known = self._by_index.get(fragment.index)
            if known is not None:
                return known, False
        elif fragment.id is not None and fragment.id in self._by_id:
            return self._by_id[fragment.id], False
        elif fragment.id is None and self._by_index:
            return len(self._by_index) - 1, False
        dense = len(self._by_index)
        self._by_index[fragment.index if fragment.index is not None else dense] = dense
        if fragment.id is not None:
            self._by_id[fragment.id] = dense
        return dense, True
