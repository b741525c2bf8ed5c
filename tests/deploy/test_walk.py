"""docs/operate/install.md, command by command, on an empty directory, to the first answer through TLS.

Programs that change the system itself (packages, users, units) are replaced; all else runs as written.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hosts.engines import open_directory
from tests.support.live import ROOT, free_port
from tests.support.processes import children
from tests.support.servers.own_servers import Postgresql
from tests.support.servers.programs import debian_program
from tests.support.servers.redis_store import REDIS_URL
from tests.support.until import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]

PAGE = ROOT / "docs/operate/install.md"
PRELUDE = r"""
set -euo pipefail
cd ROOT/checkout
apt-get() { :; }
useradd() { :; }
# Who runs this is every user of the page.
install() {
  local words=()
  while [ $# -gt 0 ]; do
    case $1 in -o|-g) shift 2 ;; *) words+=("$1"); shift ;; esac
  done
  command install "${words[@]}"
}
runuser() { shift 3; "$@"; }
createuser() { command createuser -h 127.0.0.1 -p DBPORT -U postgres "$@"; }
createdb() { command createdb -h 127.0.0.1 -p DBPORT -U postgres "$@"; }
ready() { for _ in $(seq 600); do curl --silent --fail "$1" >/dev/null && return; sleep 0.1; done; return 1; }
serve() {
  mkdir -p "ROOT/data-$1"
  (set -a; . ROOT/etc/svc/env; set +a; SVC_DATA_DIR="ROOT/data-$1" exec env -C / \
    ROOT/opt/svc/current/bin/svc serve --port "$1" --speech-port "$2" >"ROOT/gateway-$1.log" 2>&1) &
}
systemctl() {
  case "$*" in
    "enable --now svc")
      test -f ROOT/etc/systemd/system/svc.service
      serve FIRST SPEECH1; serve SECOND SPEECH2
      ready http://127.0.0.1:FIRST/readyz; ready http://127.0.0.1:SECOND/readyz ;;
    "restart nginx")
      sed -i -e 's/listen 443 ssl/listen 127.0.0.1:TLS ssl/' -e 's/listen 80;/listen 127.0.0.1:PLAIN;/' \
        -e 's#^http {#http { client_body_temp_path ROOT/t1; proxy_temp_path ROOT/t2; fastcgi_temp_path ROOT/t3; uwsgi_temp_path ROOT/t4; scgi_temp_path ROOT/t5;#' ROOT/etc/nginx/nginx.conf
      NGINX -c ROOT/etc/nginx/nginx.conf -e ROOT/nginx.log -g "pid ROOT/nginx.pid; user $(id -un); daemon off;" & ;;
  esac
}
curl() { command curl --retry 20 --retry-connrefused --retry-delay 1 --resolve ai.example.com:TLS:127.0.0.1 --resolve speech.example.com:TLS:127.0.0.1 "$@"; }
"""


def blocks() -> list[str]:
    found: list[str] = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return found


@pytest.fixture
def root() -> Iterator[Path]:
    with open_directory() as directory:
        yield directory


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the script and what it left running in the background."""
    for pid in children(process.pid):
        subprocess.run(["kill", "-TERM", str(pid)], check=False)
    process.terminate()
    process.wait(60)


@pytest.mark.redis
def test_the_page_leads_to_the_first_answer(root: Path) -> None:
    nginx = debian_program("nginx", "nginx-light")
    (root / "database").mkdir()
    database = Postgresql(root / "database")
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(root / "checkout")], check=True)
    for name in ("etc/systemd/system", "etc/nginx", "var/lib"):
        (root / name).mkdir(parents=True)
    ports = {
        name: str(free_port())
        for name in ("FIRST", "SECOND", "SPEECH1", "SPEECH2", "TLS", "PLAIN", "SIMULATOR")
    }
    script = PRELUDE + "\n".join(blocks()) + "\ntouch ROOT/complete\nwait\n"
    for written, used in (
        ("/opt/svc", "ROOT/opt/svc"),
        ("/etc/svc", "ROOT/etc/svc"),
        ("/etc/nginx", "ROOT/etc/nginx"),
        ("/etc/systemd", "ROOT/etc/systemd"),
        ("/var/lib/svc", "ROOT/var/lib/svc"),
        ("ROOTROOT", "ROOT"),
        ("127.0.0.1:5432", "127.0.0.1:DBPORT"),
        ("redis://127.0.0.1:6379", REDIS_URL),
        ("gateway-1:8000/127.0.0.1:8000", "gateway-1:8000/127.0.0.1:FIRST"),
        ("127.0.0.1:8010", "127.0.0.1:SECOND"),
        ("--port 9000", "--port SIMULATOR"),
        ("load_catalog", "load_catalog"),
        ("https://ai.example.com/", "https://ai.example.com:TLS/"),
        ("https://speech.example.com/", "https://speech.example.com:TLS/"),
        ("DBPORT", str(database.port)),
        ("NGINX", nginx),
        *ports.items(),
        ("ROOT", str(root)),
    ):
        script = script.replace(written, used)
    for name, written, used in (
        ("demo_catalog.toml", ":9000/", f":{ports['SIMULATOR']}/"),
        ("env.example", "/etc/svc", f"{root}/etc/svc"),
        ("env.example", "/var/lib/svc", f"{root}/var/lib/svc"),
        ("nginx.conf", "/etc/svc", f"{root}/etc/svc"),
    ):
        path = root / "checkout/deploy" / name
        assert written in path.read_text()
        path.write_text(path.read_text().replace(written, used))
    clean = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    log = root / "walk.log"
    began = time.monotonic()
    with log.open("wb") as written_to:
        walk = subprocess.Popen(
            ["bash", "-c", script], env=clean, stdout=written_to, stderr=subprocess.STDOUT
        )
    try:

        def complete() -> bool:
            assert walk.poll() is None, log.read_text()[-6000:]
            return (root / "complete").exists()

        until(complete, 1400)
        seconds = time.monotonic() - began
        checkout = root / "checkout"
        said = log.read_text()
        whole, _ = json.JSONDecoder().raw_decode(said[said.index('{"id":') :])
        assert whole["choices"][0]["message"]["content"] == "hello"
        assert said.count("data: [DONE]") == 1
        assert (checkout / "first.wav").read_bytes().startswith(b"RIFF")
        assert "csrfmiddlewaretoken" in (checkout / "console.html").read_text()
        assert "svc_chat_outcomes_total" in (checkout / "metrics.txt").read_text()
        print(f"\n{seconds:.0f} s from the first command to the first answer")
    finally:
        _end(walk)
        database.stop()
