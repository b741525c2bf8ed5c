"""Names, addresses and certificates: what a connection is made to, and what is refused."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohappyeyeballs import AddrInfoType
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from core.http_client import client as client_module
from core.http_client.client import Connector, HttpClient
from core.http_client.request import ConnectError, Obstacle, RequestHead
from tests.core.http_client.conftest import open_socket
from tests.support.servers.scripted import ScriptedServer, port_of, running, sized

V4 = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, ""


class Names:
    """A resolver that returns the test's addresses and counts its look-ups."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[AddrInfoType]:
        self.asked.append(host)
        return [(*V4, (address, port)) for address in self.addresses]


@asynccontextmanager
async def using(connector: Connector) -> AsyncIterator[HttpClient]:
    client = HttpClient(connector)
    try:
        yield client
    finally:
        await client.close()


async def ask(client: HttpClient, url: str) -> int:
    async with asyncio.timeout(60):
        return (await client.send(RequestHead.of("GET", url, {}), None, fresh=True)).status


async def test_a_name_is_looked_up_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names("127.0.0.1")
    async with running(ScriptedServer([[sized(b"")]])) as server:
        url = f"http://model.test:{server.port}/"
        async with using(Connector(5.0, open_socket, names)) as client:
            for _ in range(3):
                assert await ask(client, url) == 200
            assert names.asked == ["model.test"]
            monkeypatch.setattr(client_module, "_NAMES_SECONDS", 0.0)
        async with using(Connector(5.0, open_socket, names)) as client:
            for _ in range(2):
                assert await ask(client, url) == 200
            assert names.asked == ["model.test"] * 3
        assert b"host: model.test:%d\r\n" % server.port in server.requests[0]


async def test_a_name_whose_addresses_take_no_connection_is_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its server has moved: the caller tries again, and must not wait until the old address is forgotten."""
    names = Names("127.0.0.2")
    async with running(ScriptedServer([[sized(b"")]])) as server:
        url = f"http://model.test:{server.port}/"
        async with using(Connector(5.0, open_socket, names)) as client:
            for _ in range(2):
                with pytest.raises(ConnectError):
                    await ask(client, url)
            assert names.asked == ["model.test"], "a look-up serves all requests of a moment"
            monkeypatch.setattr(client_module, "_FAILED_NAMES_SECONDS", 0.0)
            with pytest.raises(ConnectError):
                await ask(client, url)
            names.addresses = ("127.0.0.1",)
            assert await ask(client, url) == 200


async def test_several_addresses_take_turns() -> None:
    seen = []

    def watched(place: AddrInfoType) -> socket.socket:
        seen.append(place[4][0])
        return open_socket(place)

    async with running(ScriptedServer([[sized(b"")]])) as server:
        names = Names("127.0.0.1", "127.0.0.2")
        async with using(Connector(5.0, watched, names)) as client:
            for _ in range(4):
                # Only 127.0.0.1 listens: the other address is left for it.
                assert await ask(client, f"http://model.test:{server.port}/") == 200
    assert seen == ["127.0.0.1", "127.0.0.2", "127.0.0.1"] * 2


async def unknown(host: str, port: int) -> list[AddrInfoType]:
    raise socket.gaierror(socket.EAI_NONAME, "unknown")


async def silent_resolver(host: str, port: int) -> list[AddrInfoType]:
    await asyncio.Event().wait()
    return []


@pytest.mark.parametrize(
    ("connector", "host", "obstacle"),
    [
        (Connector(5.0, open_socket, unknown), "model.test", Obstacle.UNKNOWN_NAME),
        (Connector(5.0, open_socket), "a" * 70 + ".test", Obstacle.UNKNOWN_NAME),
        (Connector(0.2, open_socket, silent_resolver), "model.test", Obstacle.TIMED_OUT),
    ],
    ids=["unknown", "a name that no resolver takes", "a slow resolver"],
)
async def test_a_name_without_an_address_is_not_connected(
    connector: Connector, host: str, obstacle: Obstacle
) -> None:
    async with using(connector) as client:
        with pytest.raises(ConnectError) as caught:
            await ask(client, f"http://{host}/")
    assert caught.value.obstacle is obstacle


async def test_the_deadline_of_a_request_ends_connecting() -> None:
    async with using(Connector(60.0, open_socket, silent_resolver)) as client:
        due = asyncio.get_running_loop().time() + 0.2
        with pytest.raises(ConnectError):
            await client.send(RequestHead.of("GET", "http://model.test/", {}), None, due=due)


@pytest.mark.parametrize("ends_by", [ConnectError, asyncio.CancelledError])
async def test_a_handshake_that_does_not_end_or_is_cancelled_leaves_nothing_open(
    ends_by: type[BaseException],
) -> None:
    accepted, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        await reader.read()
        writer.close()
        ended.set()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    limit = 0.3 if ends_by is ConnectError else 60.0
    async with listening, using(Connector(limit, open_socket)) as client, asyncio.timeout(60):
        asking = asyncio.ensure_future(ask(client, f"https://127.0.0.1:{port_of(listening)}/"))
        await accepted.wait()
        if ends_by is asyncio.CancelledError:
            asking.cancel()
        with pytest.raises(ends_by) as caught:
            await asking
        await ended.wait()
    if isinstance(caught.value, ConnectError):
        assert caught.value.obstacle is Obstacle.TIMED_OUT


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for ``localhost`` that signs itself, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8
    path.write_bytes(
        key.private_bytes(pem, form, serialization.NoEncryption()) + made.public_bytes(pem)
    )
    return path


@asynccontextmanager
async def encrypted(certificate: Path) -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer([[sized(b"hello")]])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2", "http/1.1"])
    async with running(server, context):
        yield server


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_trusted_certificate_is_accepted(
    monkeypatch: pytest.MonkeyPatch, certificate: Path, host: str
) -> None:
    trusting = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr(client_module, "tls_context", lambda: trusting)
    async with encrypted(certificate) as server, using(Connector(5.0, open_socket)) as client:
        request = RequestHead.of("POST", f"https://{host}:{server.port}/", {})
        body = b"x" * 1_000_000
        for _ in range(2):
            response = await client.send(request, body)
            assert await response.read_all(10) == b"hello"
        assert server.connections == 1
        assert server.requests[0].endswith(body)


@pytest.mark.parametrize("is_known", [True, False], ids=["of another name", "unknown"])
async def test_a_certificate_that_is_not_trusted_for_the_name_is_refused(
    monkeypatch: pytest.MonkeyPatch, certificate: Path, is_known: bool
) -> None:
    if is_known:
        trusting = ssl.create_default_context(cafile=certificate)
        monkeypatch.setattr(client_module, "tls_context", lambda: trusting)
    host = "model.test" if is_known else "localhost"
    async with (
        encrypted(certificate) as server,
        using(Connector(5.0, open_socket, Names("127.0.0.1"))) as client,
    ):
        with pytest.raises(ConnectError) as caught:
            await ask(client, f"https://{host}:{server.port}/")
        assert server.requests == []
    assert caught.value.obstacle is Obstacle.TLS
    assert isinstance(caught.value.cause, ssl.SSLCertVerificationError)
    assert str(caught.value) == f"no TLS connection: {caught.value.cause.verify_message}"
    assert ("certificate is not valid for 'model.test'" in str(caught.value)) is is_known


async def test_a_server_without_tls_is_not_connected_over_it() -> None:
    server = ScriptedServer([[sized(b"hello")]])
    async with running(server), using(Connector(5.0, open_socket)) as client:
        with pytest.raises(ConnectError):
            await ask(client, f"https://127.0.0.1:{server.port}/")
