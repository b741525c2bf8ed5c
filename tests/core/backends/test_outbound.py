"""Allowed addresses of model servers: the address is checked on connecting, not the name."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohappyeyeballs import AddrInfoType
from django.core.exceptions import ValidationError
from pytest_django.fixtures import Settings

from core.backends import addresses, outbound
from core.backends.validators import check_base_url
from core.http_client import client as client_module
from core.http_client.client import HttpClient
from core.http_client.request import ConnectError, Obstacle

NEVER = [
    *("169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254", "fd20:ce::254"),
    *("100.100.100.200", "168.63.129.16", "192.0.0.192", "0.0.0.0", "0.1.2.3", "::", "224.0.0.1"),
    *("ff02::1", "255.255.255.255", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"),
    "2002:a9fe:a9fe::1",
]
PRIVATE = [
    *("127.0.0.1", "::1", "10.0.0.5", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fc00::1"),
    *("fd12:3456::1", "::ffff:10.0.0.5", "64:ff9b::a00:5", "2002:a00:5::1"),
]
PUBLIC = ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e"]


def refused(address: str) -> bool:
    found = addresses.literal(address)
    assert found is not None
    return addresses.refusal(found) is not None


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("address", NEVER)
def test_some_addresses_are_never_backends(settings: Settings, address: str, private: bool) -> None:
    settings.SVC_BACKEND_PRIVATE_ADDRESSES = private
    assert refused(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_backends_by_setting(settings: Settings, address: str) -> None:
    settings.SVC_BACKEND_PRIVATE_ADDRESSES = True
    assert not refused(address)
    settings.SVC_BACKEND_PRIVATE_ADDRESSES = False
    assert refused(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_backends(settings: Settings, address: str) -> None:
    settings.SVC_BACKEND_PRIVATE_ADDRESSES = False
    assert not refused(address)


def test_a_private_address_in_a_form_is_refused_in_words(settings: Settings) -> None:
    settings.SVC_BACKEND_PRIVATE_ADDRESSES = False
    with pytest.raises(ValidationError, match="SVC_BACKEND_PRIVATE_ADDRESSES is false"):
        check_base_url("http://10.0.0.5:9000/v1")


class Rebinding:
    """A resolver that returns the test's answers, one after the other."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)

    async def __call__(self, host: str, port: int) -> list[AddrInfoType]:
        address = self._answers.pop(0)
        if ":" in address:
            return [(socket.AF_INET6, socket.SOCK_STREAM, 0, "", (address, port, 0, 0))]
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))]


@asynccontextmanager
async def open_client() -> AsyncIterator[HttpClient]:
    client = outbound.open_client()
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def listening() -> AsyncIterator[tuple[int, list[str]]]:
    """A server on every address of this machine, and the clients that connected to it."""
    seen: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("peername")[0])
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0")
    async with server:
        yield server.sockets[0].getsockname()[1], seen


async def ask(client: HttpClient, host: str, port: int) -> int:
    request = outbound.request_head("GET", f"http://{host}:{port}/", {})
    return (await client.send(request, None)).status


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_names_and_literals_are_checked_when_connecting(
    settings: Settings, listening: tuple[int, list[str]], host: str
) -> None:
    port, seen = listening
    async with open_client() as client:
        assert await ask(client, host, port) == 200
        settings.SVC_BACKEND_PRIVATE_ADDRESSES = False
        with pytest.raises(ConnectError) as caught:
            await ask(client, host, port)
    assert caught.value.obstacle is Obstacle.REFUSED
    assert "private" in str(caught.value.cause)
    assert len(seen) == 1


async def test_an_unspecified_address_is_not_this_machine(
    listening: tuple[int, list[str]],
) -> None:
    """On Linux a connection to 0.0.0.0 would arrive at 127.0.0.1."""
    port, seen = listening
    async with open_client() as client:
        with pytest.raises(ConnectError):
            await ask(client, "0.0.0.0", port)
    assert seen == []


async def test_a_name_that_resolves_to_another_address_gets_no_connection(
    monkeypatch: pytest.MonkeyPatch, listening: tuple[int, list[str]]
) -> None:
    port, seen = listening
    monkeypatch.setattr(client_module, "_NAMES_SECONDS", 0.0)
    async with open_client() as client:
        client._connector._resolve = Rebinding(
            "127.0.0.1", "169.254.169.254", "::ffff:169.254.169.254"
        )
        assert await ask(client, "rebinding.test", port) == 200
        for _ in range(2):
            with pytest.raises(ConnectError) as caught:
                await ask(client, "rebinding.test", port)
            assert "metadata" in str(caught.value.cause)
    assert len(seen) == 1


def test_an_operators_header_replaces_the_clients_own() -> None:
    head = outbound.request_head("POST", "http://host/v1", {"User-Agent": "mine", "X-Key": "a"})
    lines = head.render(2, close=False).split(b"\r\n")
    assert b"user-agent: mine" in lines
    assert b"x-key: a" in lines
    assert b"accept-encoding: identity" in lines
    assert b"content-type: application/json" in lines
