"""``make sbom`` writes a valid list of components, and the build runs it."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from tests.support.live import ROOT

PYTHON = ROOT / ".venv-tools/bin/python"
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)((?:.*\\\n)(?:    --hash=.*\n)+)", re.MULTILINE)
NOT_EXAMINED = {"httpx2-jsfetch"}
"""Packages without a licence in the document, because only a browser would install them."""
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(str(found) if found else 0)
"""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The list of components, made anew."""
    if not PYTHON.exists():
        pytest.skip("`make sbom` installs .venv-tools")
    file = tmp_path_factory.mktemp("sbom") / "new" / "svc.cdx.json"
    subprocess.run([PYTHON, "-m", "deploy.sbom", str(file)], cwd=ROOT, check=True)
    return json.loads(file.read_text())


def pins(name: str) -> list[tuple[str, str, set[str]]]:
    """Name, version and hashes of each requirement of a file."""
    text = (ROOT / name).read_text()
    found = [
        (package, version, set(re.findall(r"--hash=sha256:([0-9a-f]{64})", hashes)))
        for package, version, hashes in PIN.findall(text)
    ]
    assert len(found) == len(re.findall(r"^[\w.-]+==", text, re.MULTILINE))
    return found


def is_valid(document: Any) -> bool:
    """Whether the schema of CycloneDX 1.6 takes the document."""
    checked = subprocess.run(
        [PYTHON, "-c", VALIDATE],
        input=json.dumps(document),
        text=True,
        capture_output=True,
        check=False,
    )
    return checked.returncode == 0


@pytest.mark.long
def test_the_document_fits_the_schema_of_cyclonedx(document: Any) -> None:
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert is_valid(document)
    assert not is_valid({**document, "components": [{"name": "no type"}]})


@pytest.mark.parametrize(
    "file",
    [
        "requirements.txt",
        "requirements-neural.txt",
        "requirements-archive.txt",
        "requirements-otlp.txt",
    ],
)
def test_every_package_of_production_is_listed_with_version_licence_and_hashes(
    document: Any, file: str
) -> None:
    listed = {(each["name"], each["version"]): each for each in document["components"]}
    for package, version, hashes in pins(file):
        entry = listed[package, version]
        [where] = entry["externalReferences"]
        assert {each["content"] for each in where["hashes"]} == hashes, package
        assert entry["purl"] == f"pkg:pypi/{package}@{version}"
        assert bool(entry.get("licenses")) is (package not in NOT_EXAMINED), package


def test_the_application_depends_on_every_component(document: Any) -> None:
    [svc] = [each for each in document["dependencies"] if each["ref"] == "svc"]

    assert set(svc["dependsOn"]) == {each["bom-ref"] for each in document["components"]}


def test_the_build_makes_the_document_before_the_tests_look_at_it() -> None:
    steps = (ROOT / ".ci/run").read_text().splitlines()

    tests = next(number for number, step in enumerate(steps) if "make test" in step.split("#")[0])
    assert steps.index("make check") < steps.index("make sbom") < tests
