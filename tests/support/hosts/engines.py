"""PostgreSQL with a standby, PgBouncer, and Redis with a replica and Sentinels, each on its own host."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import psycopg

from tests.support.hosts.network import Host, Network, Running, answers
from tests.support.live import output_of, run
from tests.support.servers.programs import debian_program
from tests.support.until import until

NAME = "svc"
_OWNER = "postgres"


@contextmanager
def open_directory() -> Iterator[Path]:
    """A directory that other users of this machine may enter, unlike pytest's own."""
    directory = Path(mkdtemp(prefix="svc-hosts-"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        until(lambda: _is_removed(directory))


def _is_removed(directory: Path) -> bool:
    """Remove ``directory``; False where a process that ends still writes to it."""
    shutil.rmtree(directory, ignore_errors=True)
    return not directory.exists()


def _postgresql_program(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else debian_program(name, "postgresql")


def _as_owner(*arguments: str) -> None:
    owner = (f"--reuid={_OWNER}", f"--regid={_OWNER}", "--clear-groups")
    output_of(run("setpriv", *owner, *arguments, cwd="/"))


@dataclass
class Postgresql:
    """A primary and a standby that has every commit before a client hears of it."""

    directory: Path
    first: Host
    second: Host
    servers: dict[str, Running] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """An address that names both; libpq takes the one that takes writes."""
        hosts = f"{self.first.address}:5432,{self.second.address}:5432"
        return f"postgres://{_OWNER}@{hosts}/{NAME}?target_session_attrs=read-write"

    def start(self) -> None:
        primary, standby = self.directory / "first", self.directory / "second"
        for each in (primary, standby):
            each.mkdir(mode=0o700)
            shutil.chown(each, _OWNER, _OWNER)
        _as_owner(
            *(_postgresql_program("initdb"), "-D", str(primary), "-A", "trust", "-N"),
            *("-E", "UTF8", "--locale=C.UTF-8"),
        )
        with (primary / "pg_hba.conf").open("a") as rules:
            rules.write("host all,replication all 0.0.0.0/0 trust\n")
        self._run("first", self.first, "synchronous_standby_names=*")
        self._run_sql_on(self.first, "postgres", "ALTER SYSTEM SET wal_keep_size = '64MB'")
        # Nobody confirms a commit yet.
        self._run_sql_on(
            self.first, "postgres", f"SET synchronous_commit = local; CREATE DATABASE {NAME}"
        )
        _as_owner(
            *(_postgresql_program("pg_basebackup"), "-D", str(standby), "-R", "-X", "stream"),
            *("-h", self.first.address, "-U", _OWNER, "-c", "fast"),
        )
        self._run("second", self.second)
        until(lambda: self._scalar(self.first, "SELECT count(*) FROM pg_stat_replication"))

    def _run(self, name: str, host: Host, *options: str) -> None:
        written = [word for option in options for word in ("-c", option)]
        self.servers[name] = host.run(
            [
                *(_postgresql_program("postgres"), "-D", str(self.directory / name)),
                *("-c", f"listen_addresses={host.address}", "-c", "unix_socket_directories="),
                *("-c", "max_connections=200", "-c", "wal_level=replica", *written),
            ],
            self.directory / f"{name}.log",
            user=_OWNER,
            directory=Path("/"),
        )
        until(lambda: answers(host.address, 5432))
        until(lambda: self._accepts(host))

    def _accepts(self, host: Host) -> bool:
        try:
            return bool(self._scalar(host, "SELECT 1"))
        except psycopg.OperationalError:
            return False

    def fail_over(self) -> None:
        """Kill the primary, and let the standby take its place."""
        self.servers["first"].kill()
        self._scalar(self.second, "SELECT pg_promote(true, 60)")

    def rows(self) -> dict[str, str]:
        """Return the outcome of every chat in the ledger, by request id."""
        with psycopg.connect(self.url.replace(f"/{NAME}?", f"/{NAME}?connect_timeout=5&")) as link:
            found = link.execute("SELECT request_id, outcome FROM usage_usagerow").fetchall()
        return {str(request): str(outcome) for request, outcome in found}

    def _scalar(self, host: Host, statement: str) -> object:
        with psycopg.connect(
            host=host.address, user=_OWNER, dbname="postgres", connect_timeout=5
        ) as link:
            row = link.execute(statement.encode()).fetchone()
        return row[0] if row else None

    def _run_sql_on(self, host: Host, name: str, statements: str) -> None:
        with psycopg.connect(host=host.address, user=_OWNER, dbname=name, autocommit=True) as link:
            for each in statements.split("; "):
                link.execute(each.encode())


_PGBOUNCER = """
[databases]
svc = host=BEHIND user=postgres
[pgbouncer]
listen_addr = HERE
listen_port = 6432
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 10
max_client_conn = 200
server_login_retry = 1
ignore_startup_parameters = extra_float_digits, options
"""


@dataclass
class Pooler:
    """PgBouncer in transaction mode on a host of its own."""

    directory: Path
    host: Host
    _process: Running | None = None

    @property
    def url(self) -> str:
        return f"postgres://postgres@{self.host.address}:6432/{NAME}"

    def point_to(self, server: Host) -> None:
        """Send every connection to ``server``; a running PgBouncer reloads, as after a fail-over."""
        configuration = self.directory / "pgbouncer.ini"
        text = _PGBOUNCER.replace("BEHIND", server.address).replace("HERE", self.host.address)
        configuration.write_text(text)
        configuration.chmod(0o644)
        if self._process is None:
            program = debian_program("pgbouncer", "pgbouncer")
            log = self.directory / "pgbouncer.log"
            self._process = self.host.run([program, "-u", "nobody", str(configuration)], log)
            until(lambda: answers(self.host.address, 6432))
        else:
            subprocess.run(["kill", "-HUP", str(self._process.process.pid)], check=True)


_FRONT = """
global
  maxconn 400
defaults
  mode tcp
  timeout connect 1s
  timeout client 1h
  timeout server 1h
frontend redis
  bind HERE:6379
  default_backend redis
backend redis
  option tcp-check
  tcp-check send PING\\r\\n
  tcp-check expect string +PONG
  tcp-check send info\\ replication\\r\\n
  tcp-check expect string role:master
  default-server check inter 500ms fall 1 rise 1 on-marked-down shutdown-sessions
"""


@dataclass
class Redis:
    """A master, a replica, three Sentinels, and HAProxy, which sends clients to the master."""

    directory: Path
    first: Host
    second: Host
    front: Host
    servers: dict[str, Running] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"redis://{self.front.address}:6379"

    def start(self) -> None:
        program = debian_program("redis-server", "redis-server")
        for name, host in (("first", self.first), ("second", self.second)):
            arguments = [program, "--bind", host.address, "--port", "6379", "--save", ""]
            arguments += ["--protected-mode", "no", "--dir", str(self.directory)]
            if name == "second":
                arguments += ["--replicaof", self.first.address, "6379"]
            self.servers[name] = host.run(arguments, self.directory / f"redis-{name}.log")
            until(partial(answers, host.address, 6379))
        for number, host in enumerate((self.first, self.second, self.front)):
            written = self.directory / f"sentinel-{number}.conf"
            written.write_text(
                f"bind {host.address}\nport 26379\nprotected-mode no\n"
                f"sentinel monitor svc {self.first.address} 6379 2\n"
                "sentinel down-after-milliseconds svc 1000\nsentinel failover-timeout svc 5000\n"
            )
            # Each by itself: the first host's dies with the master.
            host.run([program, str(written), "--sentinel"], written.with_suffix(".log"))
        text = _FRONT.replace("HERE", self.front.address) + "".join(
            f"  server {each.name} {each.address}:6379\n" for each in (self.first, self.second)
        )
        (self.directory / "redis.cfg").write_text(text)
        haproxy = [
            debian_program("haproxy", "haproxy"),
            "-db",
            "-f",
            str(self.directory / "redis.cfg"),
        ]
        self.front.run(haproxy, self.directory / "redis-front.log")
        until(lambda: answers(self.front.address, 6379))


def databases(network: Network, directory: Path) -> tuple[Postgresql, Pooler]:
    """Start PostgreSQL on two hosts, and PgBouncer on a third."""
    postgresql = Postgresql(directory, network.host("pg1"), network.host("pg2"))
    postgresql.start()
    pooler = Pooler(directory, network.host("pool"))
    pooler.point_to(postgresql.first)
    return postgresql, pooler
