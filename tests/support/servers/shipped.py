"""The proxies of ``deploy/`` in front of two gateways, with only names, ports and paths filled in."""

from __future__ import annotations

import getpass
import re
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.live import ROOT, free_port, output_of, run
from tests.support.servers.envoy import envoy_program
from tests.support.servers.programs import debian_program, running

INFERENCE_HOST, SPEECH_HOST = "ai.example.com", "speech.example.com"
HOSTS = (INFERENCE_HOST, SPEECH_HOST)


@dataclass(frozen=True)
class Certificate:
    """A certificate of both hosts that signs itself."""

    directory: Path

    @property
    def context(self) -> ssl.SSLContext:
        """Verifies it, as clients do."""
        return ssl.create_default_context(cafile=str(self.directory / "fullchain.pem"))


def certificate(directory: Path) -> Certificate:
    """Make ``fullchain.pem``, ``privkey.pem`` and both in ``svc.pem``, as HAProxy reads them."""
    openssl = debian_program("openssl", "openssl")
    chain, key = directory / "fullchain.pem", directory / "privkey.pem"
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    made = run(
        *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-days", "2", "-subj", f"/CN={INFERENCE_HOST}"),
        *("-addext", f"subjectAltName={names}", "-keyout", key, "-out", chain),
    )
    output_of(made)
    (directory / "svc.pem").write_text(chain.read_text() + key.read_text())
    return Certificate(directory)


@dataclass(frozen=True)
class Shipped:
    """A proxy that ``deploy/`` has a file of."""

    name: str
    file: str
    find: Callable[[], str]
    check: Sequence[str]
    """Arguments with which the program checks CONFIGURATION and ends."""
    run: Sequence[str]

    def __str__(self) -> str:
        return self.name

    def configuration(self, directory: Path, ports: Sequence[int], listening: int) -> Path:
        """Fill in the gateways' ports, the proxy's own and the paths; returns the file."""
        text = (ROOT / "deploy" / self.file).read_text()
        filled = {
            "/etc/svc/tls": str(directory),
            **{
                written.format(number): used.format(port)
                for number, port in enumerate(ports, start=1)
                for written, used in (
                    ("server gateway-{}:8000", "server 127.0.0.1:{}"),
                    (" gateway-{}:8000\n", " 127.0.0.1:{}\n"),
                    (" gateway-{}:8000 ", " 127.0.0.1:{} "),
                    ("gateway-{}, port_value: 8000", "127.0.0.1, port_value: {}"),
                )
            },
            # Its own ports, and what a user who is not root may write to.
            "listen 443 ssl": f"listen 127.0.0.1:{listening} ssl",
            "listen 80;": f"listen 127.0.0.1:{free_port()};",
            "bind :443": f"bind 127.0.0.1:{listening}",
            "bind :80": f"bind 127.0.0.1:{free_port()}",
            "address: 0.0.0.0, port_value: 443": f"address: 127.0.0.1, port_value: {listening}",
            f"{INFERENCE_HOST}, {SPEECH_HOST} {{": "".join(
                f"https://{host}:{listening}{end}"
                for host, end in zip(HOSTS, (", ", " {"), strict=True)
            ),
            "\nhttp {\n": "\nhttp {\n"
            + "".join(
                f"  {kind}_temp_path {directory}/{kind};\n"
                for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            ),
            "# Caddy (2.6": f"{{\n\tauto_https disable_redirects\n\tadmin off\n\tstorage file_system {directory}\n}}\n# Caddy (2.6",
        }
        for written, used in filled.items():
            text = text.replace(written, used)
        assert not re.search(r"gateway-\d[:,]", text), "a gateway's address was not filled in"
        found = directory / self.file
        found.write_text(text)
        return found

    def arguments(self, words: Sequence[str], configuration: Path) -> list[str]:
        directory = str(configuration.parent)
        filled = [
            word.replace("CONFIGURATION", str(configuration))
            .replace("DIRECTORY", directory)
            .replace("USER", getpass.getuser())
            for word in words
        ]
        return [self.find(), *filled]


_NGINX_PATHS = "pid DIRECTORY/pid; user USER; error_log DIRECTORY/error.log;"
SHIPPED = (
    Shipped(
        "nginx",
        "nginx.conf",
        lambda: debian_program("nginx", "nginx-light"),
        ("-t", "-c", "CONFIGURATION", "-g", _NGINX_PATHS),
        ("-c", "CONFIGURATION", "-g", _NGINX_PATHS + " daemon off;"),
    ),
    Shipped(
        "haproxy",
        "haproxy.cfg",
        lambda: debian_program("haproxy", "haproxy"),
        ("-c", "-f", "CONFIGURATION"),
        ("-db", "-f", "CONFIGURATION"),
    ),
    Shipped(
        "envoy",
        "envoy.yaml",
        envoy_program,
        ("--mode", "validate", "-c", "CONFIGURATION"),
        ("-c", "CONFIGURATION", "--disable-hot-restart", "--log-level", "warning"),
    ),
    Shipped(
        "caddy",
        "Caddyfile",
        lambda: debian_program("caddy", "caddy"),
        ("validate", "--adapter", "caddyfile", "--config", "CONFIGURATION"),
        ("run", "--adapter", "caddyfile", "--config", "CONFIGURATION"),
    ),
)


@contextmanager
def running_shipped(shipped: Shipped, made: Certificate, ports: Sequence[int]) -> Iterator[int]:
    """Run a proxy in front of gateways at ``ports`` of this host; yields its port, with TLS."""
    listening = free_port()
    configuration = shipped.configuration(made.directory, ports, listening)
    log = made.directory / f"{shipped.name}.log"
    with running(shipped.arguments(shipped.run, configuration), listening, log):
        yield listening
