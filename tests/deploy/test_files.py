"""The other files of ``deploy/`` fit the gateway, as far as no service manager or cluster runs here."""

from __future__ import annotations

import re
import secrets
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from svc_project.operator_settings import SETTINGS
from tests.support.clients.separate_environment import program
from tests.support.live import ROOT, output_of, run
from tests.support.servers.programs import debian_program

DEPLOY = ROOT / "deploy"
LIMITS = {"SVC_DRAIN_DELAY_SECONDS": 5.0, "SVC_DRAIN_SECONDS": 660.0}


def variables(text: str) -> dict[str, str]:
    """The lines of an environment file."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def is_setting(name: str) -> bool:
    return name in SETTINGS or name.removesuffix("_FILE") in SETTINGS


def test_the_example_of_settings_passes_every_check_of_deployment(tmp_path: Path) -> None:
    settings = variables((DEPLOY / "env.example").read_text())
    assert len(settings) == 15
    assert all(map(is_setting, settings))
    for name, value in settings.items():
        if name.endswith("_FILE"):
            (tmp_path / Path(value).name).write_text(secrets.token_urlsafe(48) + "\n")
            settings[name] = str(tmp_path / Path(value).name)
    settings["SVC_DATA_DIR"] = str(ROOT / "var" / f"example-{tmp_path.name}")
    try:
        check = ("check", "--deploy", "--fail-level", "WARNING")
        env = {"PATH": "/usr/bin:/bin", **settings}
        output_of(run(sys.executable, "manage.py", *check, cwd=ROOT, env=env))
    finally:
        shutil.rmtree(settings["SVC_DATA_DIR"], ignore_errors=True)


@pytest.mark.parametrize("unit", ["svc.service", "svc.socket", "svc-migrate.service"])
def test_systemd_takes_the_unit(unit: str, tmp_path: Path) -> None:
    program = debian_program("systemd-analyze", "systemd")
    for path in (DEPLOY / "systemd").iterdir():
        # Only the program is not where it will be.
        (tmp_path / path.name).write_text(
            path.read_text().replace("/opt/svc/current/bin/svc", "/bin/true")
        )

    done = run(program, "verify", "--man=no", "--recursive-errors=no", tmp_path / unit)

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_unit_waits_as_long_as_a_drain_takes() -> None:
    unit = (DEPLOY / "systemd/svc.service").read_text()
    [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(seconds) >= sum(LIMITS.values()) + 45
    assert "ExecReload=/bin/kill -HUP $MAINPID" in unit
    sockets = (DEPLOY / "systemd/svc.socket").read_text()
    listening = re.findall(r"^ListenStream=(.*)$", sockets, re.MULTILINE)
    assert listening == ["127.0.0.1:8000", "127.0.0.1:8001"]


def test_the_unit_is_started_again_however_often_it_ends() -> None:
    """A socket of a service that has reached its start limit is closed, and refuses every client."""
    unit = (DEPLOY / "systemd/svc.service").read_text()
    about, _, service = unit.partition("[Service]")
    assert "\nStartLimitIntervalSec=0\n" in about
    assert "\nRestart=always\n" in service


def steps() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile and their words."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines())]


def test_nginx_may_open_as_many_files_as_its_connections_take() -> None:
    """Two for each that is passed on; the service's own limit is 1024 on most systems."""
    text = (DEPLOY / "nginx.conf").read_text()
    files, connections = (
        int(re.findall(rf"\b{name} (\d+);", text)[0])
        for name in ("worker_rlimit_nofile", "worker_connections")
    )
    assert files > 2 * connections


def test_the_image_runs_as_a_user_with_a_place_for_its_journal() -> None:
    last = {word: rest for word, rest in steps()}  # noqa: C416  # the last of each word
    assert last["USER"] == "10001:10001"
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert last["ENTRYPOINT"] == '["svc"]'
    assert "/var/lib/svc" in last["VOLUME"]
    assert "/livez" in last["HEALTHCHECK"]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def test_compose_names_secrets_volumes_and_settings_that_exist(tmp_path: Path) -> None:
    directory = tmp_path / "secrets"
    directory.mkdir(mode=0o755)
    for _ in range(2):  # a second time changes nothing
        output_of(run(sys.executable, DEPLOY / "compose_secrets.py", directory))
        made = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert made == {path.name: path.read_bytes() for path in directory.iterdir()}
    assert directory.stat().st_mode & 0o777 == 0o700
    for ignoring in (".gitignore", ".dockerignore"):
        assert "deploy/secrets" in (ROOT / ignoring).read_text()
    described = compose()
    for name, secret in described["secrets"].items():
        assert secret == {"file": f"secrets/{name}"}
        assert len(made[name].strip()) > 32
    for name, service in described["services"].items():
        assert set(service.get("secrets", ())) <= set(described["secrets"]), name
        assert set(service.get("depends_on", ())) <= set(described["services"]), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./secrets/"):
                assert Path(source).name in made
            elif source.startswith("./"):
                assert (DEPLOY / source).exists()
            else:
                assert source in described["volumes"]
        if service["image"] == "svc":
            assert all(map(is_setting, service["environment"]))
            for variable, path in service["environment"].items():
                if variable.endswith("_FILE"):
                    assert Path(path).name in service["secrets"]
        else:
            assert re.search(r":\d", service["image"]), "an image without a version"
    gateways = [name for name in described["services"] if name.startswith("gateway")]
    assert all(f"server {name}:8000" in (DEPLOY / "nginx.conf").read_text() for name in gateways)
    grace = described["services"]["gateway-1"]["stop_grace_period"]
    assert int(grace.removesuffix("m")) * 60 >= sum(LIMITS.values()) + 45


def manifests() -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for path in (DEPLOY / "kubernetes").glob("*.yaml"):
        for each in yaml.safe_load_all(path.read_text()):
            found[each["kind"], each.get("metadata", {}).get("name", "")] = each
    return found


def test_every_manifest_fits_the_schemas_of_kubernetes() -> None:
    others = {"kustomization.yaml", "model-servers.yaml"}  # kustomize's and KEDA's own kinds
    files = [each for each in (DEPLOY / "kubernetes").glob("*.yaml") if each.name not in others]
    printed = output_of(run(program("kubernetes-validate"), "--strict", *files))
    assert printed.count(" passed for ") >= len(files), printed


def test_the_manifests_fit_each_other() -> None:
    made = manifests()
    kustomization = made["Kustomization", ""]
    files = {path.name for path in (DEPLOY / "kubernetes").glob("*.yaml")}
    assert files - set(kustomization["resources"]) == {
        "kustomization.yaml",
        "secret.example.yaml",
        "model-servers.yaml",  # needs KEDA
    }
    gateways = made["StatefulSet", "svc"]
    pod = gateways["spec"]["template"]["spec"]
    [container] = pod["containers"]
    settings = made["ConfigMap", "svc-settings"]["data"]
    assert all(map(is_setting, [*settings, *made["Secret", "svc-secrets"]["stringData"]]))
    drain = float(settings["SVC_DRAIN_DELAY_SECONDS"]) + float(settings["SVC_DRAIN_SECONDS"])
    assert pod["terminationGracePeriodSeconds"] >= drain + 45
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert settings["SVC_DATA_DIR"] in {each["mountPath"] for each in container["volumeMounts"]}
    labels = gateways["spec"]["template"]["metadata"]["labels"]
    for kind, name in (("Service", "svc"), ("Service", "svc-pods")):
        assert made[kind, name]["spec"]["selector"] == labels
    assert made["PodDisruptionBudget", "svc"]["spec"]["selector"]["matchLabels"] == labels
    target = made["HorizontalPodAutoscaler", "svc"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("StatefulSet", "svc")
    for spec in (pod, made["Job", "svc-migrate"]["spec"]["template"]["spec"]):
        assert spec["securityContext"]["runAsNonRoot"] is True
        for each in spec["containers"]:
            assert each["securityContext"]["readOnlyRootFilesystem"] is True
            assert {source[kind]["name"] for source in each["envFrom"] for kind in source} == {
                "svc-settings",
                "svc-secrets",
            }
