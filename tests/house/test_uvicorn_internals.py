"""The members of uvicorn that are used without being documented are still there (docs/decisions/0011)."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from textwrap import dedent

import pytest
from uvicorn import Server
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.server import ServerProtocol

SERVING = Path(__file__).resolve().parents[2] / "svc_project" / "serving"

INTERNALS: dict[type, set[str]] = {
    HttpToolsProtocol: {
        "app", "app_state", "config", "connections", "cycle", "flow", "headers", "loop", "parser", "pipeline",
        "scope", "server", "server_state", "transport", "url", "ws_protocol_class",
        "_should_upgrade", "_start_asgi_task", "_unset_keepalive_if_required", "connection_lost", "connection_made", "data_received", "eof_received",
        "on_body", "on_header", "on_headers_complete", "on_message_begin", "on_message_complete",
        "on_response_complete", "on_url",
        "pause_writing", "resume_writing", "send_400_response", "shutdown", "timeout_keep_alive_handler",
    },
    FlowControl: {"_transport", "pause_reading", "read_paused", "resume_reading", "write_paused"},
    RequestResponseCycle: {
        "chunked_encoding", "disconnected", "expected_content_length", "keep_alive", "message_event",
        "response_complete", "response_started", "scope", "waiting_for_100_continue",
    },
    WebSocketsSansIOProtocol: {
        "close_sent", "close_timer", "config", "conn", "handshake_complete", "loop", "queue", "read_paused",
        "server", "transport", "writable", "connection_lost", "connection_made", "data_received", "receive", "send",
        "handle_connect", "handle_parser_exception", "pause_writing", "resume_writing",
    },
    ServerProtocol: {
        "accept", "available_extensions", "close_sent", "data_to_send", "discard", "handshake_exc", "logger", "parse",
        "parser", "parser_exc", "recv_frame", "reject", "send_eof", "send_response",
    },
    Server: {"capture_signals", "handle_exit", "main_loop", "shutdown", "startup"},
}  # fmt: skip


def members(kind: type) -> set[str]:
    """Methods of a class, and the attributes that its methods give ``self``."""
    found = set(dir(kind))
    for base in kind.__mro__[:-1]:
        tree = ast.parse(dedent(inspect.getsource(base)))
        found |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        }
    return found


@pytest.mark.parametrize("kind", INTERNALS, ids=lambda kind: kind.__name__)
def test_every_internal_that_is_used_is_still_there(kind: type) -> None:
    assert INTERNALS[kind] - members(kind) == set()


def overridden(name: str, kind: type) -> set[str]:
    """What the classes of a module define themselves although ``kind`` has it."""
    tree = ast.parse((SERVING / name).read_text(encoding="utf-8"))
    ours = {
        node.name
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef)
        for node in each.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return {each for each in ours & set(dir(kind)) if not each.startswith("__")}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("http_protocol.py", {HttpToolsProtocol}),
        ("connection_watches.py", {FlowControl, HttpToolsProtocol}),
        ("http_messages.py", {HttpToolsProtocol}),
        ("websocket_protocol.py", {WebSocketsSansIOProtocol, ServerProtocol}),
        ("server.py", {Server}),
    ],
)
def test_what_is_overridden_is_listed(name: str, kinds: set[type]) -> None:
    found = {each for kind in kinds for each in overridden(name, kind)}
    assert found - {each for kind in kinds for each in INTERNALS[kind]} == set()
