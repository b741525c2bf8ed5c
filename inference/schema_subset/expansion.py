"""How large a schema becomes when each reference is replaced by the definition that it names.

A few definitions that refer to one another twice double at each step, so a small document can mean
a huge one to a model server that writes references out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from inference.schema_subset.refs import def_name
from inference.schema_subset.tables import MAX_EXPANDED


class _Body(NamedTuple):
    """One definition, or the root: its own schemas, and the definitions that it refers to, each as
    often as it does."""

    schemas: int
    refers_to: list[str]


def expanded_size(root: Any, defs: dict[str, Any]) -> int:
    """The number of schemas in ``root`` written out, at most ``MAX_EXPANDED`` and one.

    A reference back into a definition that is being written out counts as one schema, so a
    recursive schema has a size. Takes time in proportion to the document.
    """
    bodies = {name: _body(definition, defs) for name, definition in defs.items()}
    sizes: dict[str, int] = {}
    for name in defs:
        _measure(name, bodies, sizes)
    return _size(_body(root, defs), sizes)


def _body(schema: Any, defs: dict[str, Any]) -> _Body:
    count, refers_to, waiting = 0, [], [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        count += 1
        name = def_name(node.get("$ref"))
        if name is not None and name in defs:
            refers_to.append(name)
        for keyword, kind in (("properties", dict), ("anyOf", list)):
            children = node.get(keyword)
            if isinstance(children, kind):
                waiting.extend(children.values() if isinstance(children, dict) else children)
        waiting.append(node.get("items"))
    return _Body(count, refers_to)


def _measure(first: str, bodies: dict[str, _Body], sizes: dict[str, int]) -> None:
    """Put the size of ``first``, and of what it leads to, into ``sizes``: depth first, with a stack
    of its own, since a chain of definitions can be long."""
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
    """A definition without a size yet is one that is being written out."""
    inside = sum(sizes.get(name, 1) for name in body.refers_to)
    return min(body.schemas + inside, MAX_EXPANDED + 1)
