"""Finds what a document's definitions refer to, in one pass before the rules are checked.

It answers two questions. How large does the document become when each reference is replaced by the
definition that it names? A few definitions that refer to one another twice double at each step, so
a small document can become huge in a model server that expands references. And which definitions
form a circle that never reaches a schema?
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from inference.schema_subset.tables import MAX_EXPANDED, MAX_SCHEMAS

_PREFIX = "#/$defs/"
_BAD_ESCAPE = re.compile(r"~(?![01])|%(?![0-9A-Fa-f]{2})")

_LONGEST = 8192
"""Longest reference in characters: enough for several hundred percent-encoded ones of any script."""


class RefReader:
    """Parses the references of one document, each distinct text once."""

    def __init__(self) -> None:
        self._names: dict[str, str | None] = {}

    def name(self, ref: Any) -> str | None:
        """Return ``def_name`` of ``ref``, cached."""
        if not isinstance(ref, str):
            return None
        if ref not in self._names:
            self._names[ref] = def_name(ref)
        return self._names[ref]


def def_name(ref: Any) -> str | None:
    """Return the name that ``ref`` points at, with escapes decoded; None for any other reference,
    and for one longer than ``_LONGEST``.

    A fragment is percent-encoded UTF-8 around a JSON pointer (RFC 6901, section 6).
    """
    if not isinstance(ref, str) or len(ref) > _LONGEST or _BAD_ESCAPE.search(ref):
        return None
    try:
        fragment = unquote(ref, errors="strict")
    except UnicodeDecodeError:
        return None
    name = fragment.removeprefix(_PREFIX)
    # Percent-decoding can yield a stray tilde, so the escapes are checked again.
    if not ref.startswith("#") or name == fragment or "/" in name or re.search("~(?![01])", name):
        return None
    return name.replace("~1", "/").replace("~0", "~")


class _Body(NamedTuple):
    """One definition, or the root: the number of its own schemas, the definitions that it refers to
    (with repetitions), and those that it refers to without a property or an item in between."""

    schemas: int
    refers_to: list[str]
    leads_to: set[str]


class Outline(NamedTuple):
    """``expanded`` is the number of schemas after expansion, at most ``MAX_EXPANDED`` + 1.

    ``endless`` are the definitions that lead by ``$ref`` and ``anyOf`` alone into a circle, which a
    model server would follow for ever. Recursion through ``properties`` or ``items`` is allowed:
    each turn consumes a piece of the answer.
    """

    expanded: int
    endless: frozenset[str]


def outline(root: Any, defs: dict[str, Any], refs: RefReader) -> Outline | None:
    """Outline a document; return None when it has more than ``MAX_SCHEMAS`` schemas.

    A reference back into a definition that is being expanded counts as one schema, so a recursive
    schema has a finite size.
    """
    left = MAX_SCHEMAS
    bodies: dict[str, _Body] = {}
    if len(defs) > left:
        return None
    for name, definition in defs.items():
        body = _body(definition, defs, refs, left)
        if body is None:
            return None
        bodies[name] = body
        left -= body.schemas
    whole = _body(root, defs, refs, left)
    if whole is None:
        return None
    sizes: dict[str, int] = {}
    for name in defs:
        _measure(name, bodies, sizes)
    return Outline(
        _size(whole, sizes), _endless({name: body.leads_to for name, body in bodies.items()})
    )


def _body(schema: Any, defs: dict[str, Any], refs: RefReader, most: int) -> _Body | None:
    """Return None when it has more than ``most`` schemas, or values in the place of one."""
    count = seen = 0
    refers_to: list[str] = []
    leads_to: set[str] = set()
    waiting: list[tuple[Any, bool]] = [(schema, True)]
    while waiting:
        node, is_direct = waiting.pop()
        if node is None:
            continue
        seen += 1
        if seen + len(waiting) > 2 * most:
            return None
        if not isinstance(node, dict):
            continue
        count += 1
        name = refs.name(node.get("$ref"))
        if name is not None and name in defs:
            refers_to.append(name)
            if is_direct:
                leads_to.add(name)
        properties, branches = node.get("properties"), node.get("anyOf")
        if isinstance(properties, dict):
            waiting += [(child, False) for child in islice(properties.values(), 2 * most)]
        if isinstance(branches, list):
            waiting += [(branch, is_direct) for branch in islice(branches, 2 * most)]
        waiting.append((node.get("items"), False))
    return _Body(count, refers_to, leads_to) if count <= most else None


def _measure(first: str, bodies: dict[str, _Body], sizes: dict[str, int]) -> None:
    """Put the sizes of ``first`` and of the definitions it leads to into ``sizes``: depth first,
    with an explicit stack, because a chain of definitions can be long."""
    stack = [(first, iter(bodies[first].refers_to))]
    begun = {first}
    while stack:
        name, targets = stack[-1]
        for target in targets:
            if target not in sizes and target not in begun:
                begun.add(target)
                stack.append((target, iter(bodies[target].refers_to)))
                break
        else:
            sizes[name] = _size(bodies[name], sizes)
            stack.pop()


def _size(body: _Body, sizes: dict[str, int]) -> int:
    """Return a definition's size; one that has none yet is being expanded and counts as 1."""
    inside = sum(sizes.get(name, 1) for name in body.refers_to)
    return min(body.schemas + inside, MAX_EXPANDED + 1)


def _endless(leads_to: dict[str, set[str]]) -> frozenset[str]:
    led_by: dict[str, list[str]] = {}
    for name, targets in leads_to.items():
        for target in targets:
            led_by.setdefault(target, []).append(name)
    ended = [name for name, targets in leads_to.items() if not targets]
    for name in ended:
        for source in led_by.get(name, ()):
            leads_to[source].discard(name)
            if not leads_to[source]:
                ended.append(source)
    return frozenset(name for name, targets in leads_to.items() if targets)
