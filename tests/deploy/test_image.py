"""``deploy/Dockerfile`` without a container engine: built step by step, started as it says, and stopped.

Each stage gets a copy of this machine's root that ends with its mount namespace (overlayfs, as root). This
machine and the Python of the tests stand for the base image, so no registry is needed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import httpx2
import pytest

from tests.support.hosts.engines import open_directory
from tests.support.hosts.network import Host, Network, Running, network
from tests.support.live import ROOT, Command, fetch, free_port, output_of, run
from tests.support.processes import children
from tests.support.until import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900), pytest.mark.xdist_group("hosts")]

Step = tuple[str, str]
BASE_PATH = f"{sys.base_prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SECRETS = dict.fromkeys(("SECRET_KEY", "SVC_KEY_PEPPERS"), "0123456789" * 5)
DRAIN = 30.0


def stages() -> list[list[Step]]:
    """The instructions of each stage of the Dockerfile, and their words."""
    text = re.sub(r"^#.*\n", "", (ROOT / "deploy/Dockerfile").read_text(), flags=re.MULTILINE)
    found: list[list[Step]] = []
    for word, _, rest in (line.partition(" ") for line in text.splitlines() if line):
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def is_sent(path: PurePosixPath) -> bool:
    """Whether ``.dockerignore`` lets a file into the build; the last pattern that fits counts."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = [each.as_posix() for each in (path, *path.parents)]
        names = [*parts, *path.parts] if "**/" in line else parts
        if line and line[0] != "#" and any(fnmatch(each, pattern) for each in names):
            sent = line.startswith("!")
    return sent


@dataclass
class Machine:
    """A mount namespace with the roots of both stages, and a host with an address of its own."""

    directory: Path
    host: Host
    holder: int
    volumes: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=lambda: {"PATH": BASE_PATH})

    @property
    def enter(self) -> list[str]:
        return ["nsenter", f"--mount=/proc/{self.holder}/ns/mnt"]

    def root(self, stage: str) -> Path:
        return self.directory / stage / "root"

    def mount(self, script: str) -> None:
        """Run a shell script among the mounts of the namespace."""
        output_of(run(*self.enter, "bash", "-ec", script, timeout=120))

    def layer(self, stage: str) -> None:
        """Lay an empty layer over this machine's root."""
        place = self.directory / stage
        place.mkdir()
        self.mount(f"""
            mount -t tmpfs -o mode=755 none {place}; mkdir {place}/up {place}/work {place}/root
            mount -t overlay -o lowerdir=/,upperdir={place}/up,workdir={place}/work none {place}/root
            mount --rbind /dev {place}/root/dev; mount --rbind /proc {place}/root/proc
            for each in {" ".join(map(str, Path(sys.base_prefix).parents))}; do chmod a+rx {place}/root$each; done
        """)

    def within(self, stage: str, directory: str, *command: str) -> list[str]:
        """The command line that runs ``command`` in ``directory`` of the root of a stage."""
        return [*self.enter, "chroot", str(self.root(stage)), "env", "-C", directory, *command]

    def build(self, steps: Sequence[Step]) -> None:
        """Do the first stage; an unknown instruction fails."""
        self.layer("build")
        for word, rest in steps:
            if word == "RUN":
                line = ["env", f"PATH={BASE_PATH}", "bash", "-ec", rest]
                done = run(*self.within("build", "/build", *line), timeout=600)
                assert done.returncode == 0, f"{rest}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            elif word == "WORKDIR":
                self.mount(f"mkdir -p {self.root('build')}{rest}")
            elif word == "COPY":
                *names, _ = rest.split()
                self._copy(names)
            else:
                assert word == "FROM"

    def _copy(self, names: list[str]) -> None:
        known = output_of(run("git", "ls-files", "--", *names, cwd=ROOT)).splitlines()
        sent = "\n".join(name for name in known if is_sent(PurePosixPath(name)))
        archive = self.directory / "sent.tar"
        listed = self.directory / "sent"
        listed.write_text(sent)
        output_of(run("tar", "-cf", archive, "-C", ROOT, "-T", listed))
        self.mount(f"tar -xf {archive} -C {self.root('build')}/build")

    def finish(self, steps: Sequence[Step]) -> dict[str, str]:
        """Do the second stage, then make its root read-only; return the words of what is left for a start."""
        self.layer("image")
        image, left = self.root("image"), {}
        for word, rest in steps:
            if word == "COPY":
                source, target = rest.removeprefix("--from=build ").split()
                self.mount(
                    f"mkdir -p {image}{target}; cp -a {self.root('build')}{source}/. {image}{target}"
                )
            elif word == "RUN":
                output_of(run(*self.within("image", "/", "bash", "-ec", rest)))
            elif word == "ENV":
                pairs = (each.partition("=") for each in shlex.split(rest))
                self.variables |= {
                    name: value.replace("$PATH", BASE_PATH) for name, _, value in pairs
                }
            elif word == "VOLUME":
                self.volumes = json.loads(rest)
            else:
                left[word] = rest
        # A new volume has the owner and the rights of the image's directory.
        for volume in self.volumes:
            own = self.directory / "volumes" / volume.strip("/")
            own.mkdir(parents=True)
            self.mount(
                f"chown --reference={image}{volume} {own}; chmod --reference={image}{volume} {own}; "
                f"mount --bind {own} {image}{volume}"
            )
        self.mount(f"mount -o remount,ro {image}")
        return left

    def command(self, user: str, words: Sequence[str], variables: dict[str, str]) -> list[str]:
        """The command line that runs ``words`` as a container would: process 1, without any capability."""
        uid, gid = user.split(":")
        pairs = [f"{name}={value}" for name, value in (self.variables | variables).items()]
        start = "mount -t proc proc /proc && exec setpriv " + shlex.join(
            [
                *(f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs"),
                *("--inh-caps=-all", "--bounding-set=-all", "env", "-i", *pairs, *words),
            ]
        )
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return self.within("image", "/", *apart, "sh", "-c", start)

    def printed(self, user: str, words: Sequence[str], variables: dict[str, str]) -> str:
        """What a container prints that ends well (``docker run --rm``)."""
        entered = ["ip", "netns", "exec", self.host.name]
        return output_of(run(*entered, *self.command(user, words, variables)))


@pytest.fixture
def box() -> Iterator[Machine]:
    with open_directory() as directory, network() as hosts:
        holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation=private", "sleep", "infinity"]
        )
        own = os.readlink("/proc/self/ns/mnt")
        try:
            until(lambda: os.readlink(f"/proc/{holder.pid}/ns/mnt") != own)
            yield Machine(directory, hosts.host("image"), holder.pid)
        finally:
            holder.kill()
            holder.wait()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is missing (util-linux)")
def test_the_image_is_built_serves_as_its_user_on_a_read_only_root_and_drains(
    box: Machine,
) -> None:
    first, second = stages()
    box.build(first)
    compiled = box.root("build") / "opt/svc/lib"
    box.mount(f"test -n \"$(find {compiled} -path '*svc_project/__pycache__/settings.*.pyc')\"")
    image = box.finish(second)
    user, entry = image["USER"], json.loads(image["ENTRYPOINT"])
    settings = {
        **SECRETS,
        "ALLOWED_HOSTS": box.host.address,
        "DATABASE_URL": "sqlite:////var/lib/svc/svc.sqlite3",
        "SVC_DRAIN_SECONDS": str(DRAIN),
    }

    def svc(*arguments: str) -> str:
        return box.printed(user, [*entry, *arguments], settings)

    with pytest.raises(AssertionError, match="Read-only file system"):
        box.printed(user, ["touch", "/opt/svc/new"], {})
    assert box.printed(user, ["id", "-u"], {}).strip() == user.partition(":")[0]
    assert re.fullmatch(r"svc \d+\.\d+\.\d+\n", svc("--version"))
    port = free_port()
    simulator = Command(
        ["simulate_backend", "--host", Network.address, "--port", str(port)], {},
        box.directory / "simulator.log",
    )  # fmt: skip
    try:
        simulator.wait_for(f"{Network.address}:{port}")
        text = (ROOT / "tests/catalog.toml").read_text()
        catalog = text.replace("127.0.0.1:PORT", f"{Network.address}:{port}")
        (box.directory / "volumes/tmp/catalog.toml").write_text(catalog)
        svc("migrate")
        svc("load_catalog", "/tmp/catalog.toml")
        svc("org", "create", "acme")
        key = json.loads(svc("keys", "create", "acme", "--scope", "inference", "--json"))["key"]
        serving = box.host.run(
            box.command(user, [*entry, *json.loads(image["CMD"])], settings),
            box.directory / "gateway.log",
        )
        _serves_and_drains(box, serving, image, user, key)
    finally:
        simulator.stop()


def _serves_and_drains(
    box: Machine, serving: Running, image: dict[str, str], user: str, key: str
) -> None:
    url = f"http://{box.host.address}:8000"

    def answers() -> bool:
        assert serving.is_running, serving.log.read_text()
        try:
            return fetch(f"{url}/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    until(answers)
    [unshared] = children(serving.process.pid) or {serving.process.pid}
    check = re.sub(r"^.*CMD ", "", image["HEALTHCHECK"])
    box.printed(user, json.loads(check), {})
    chat = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "say: from outside"}]}
    whole = fetch(f"{url}/v1/chat/completions", "POST", key=key, json=chat)
    assert whole.json()["choices"][0]["message"]["content"] == "from outside"
    chat["messages"] = [{"role": "user", "content": "[[sim tokens=40 pace=20]]"}]
    headers = {"authorization": f"Bearer {key}"}
    with httpx2.stream(
        "POST", f"{url}/v1/chat/completions", json=chat | {"stream": True}, headers=headers, timeout=60
    ) as stream:  # fmt: skip
        parts = stream.iter_text()
        seen = next(parts)
        os.kill(unshared, getattr(signal, image["STOPSIGNAL"]))
        seen += "".join(parts)
    assert seen.endswith("data: [DONE]\n\n")
    assert serving.process.wait(DRAIN) == 0
    log = serving.log.read_text()
    assert "Traceback" not in log, log
