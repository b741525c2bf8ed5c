"""Packages are locked by hash, and the licence of each is known and listed."""

from __future__ import annotations

import importlib.metadata
import re
from base64 import b64decode

import pytest
import soundfile
import soxr

from deploy.components import CARRIED, LOCKED, licence_rows, packages
from speech.engines.kokoro import files
from tests.support.live import ROOT

ASKS_FOR_NOTICE = re.compile(r"GPL|MPL|CC-BY|TCL")
LISTS = sorted(ROOT.glob("requirements*.txt"))


def declared(package: str) -> str:
    """The licence in the metadata of an installed package, in one line."""
    about = importlib.metadata.metadata(package)
    if expressions := about.get_all("License-Expression"):
        return str(expressions[0])
    own = str((about.get_all("License") or [""])[0]).strip().split("\n")[0][:60]
    kinds = [
        each.split(" :: ")[-1]
        for each in about.get_all("Classifier", [])
        if each.startswith("License")
    ]
    return "; ".join([*([own] if own else []), *kinds])


@pytest.mark.parametrize("file", [each for each in LISTS if "transformers" not in each.name])
def test_every_requirement_is_pinned_by_hash(file: object) -> None:
    text = ROOT.joinpath(str(file)).read_text()
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    pins = [line for line in lines if not line.startswith(" ")]
    assert pins
    for pin, following in zip(lines, [*lines[1:], ""], strict=True):
        if pin in pins:
            assert re.match(r"[A-Za-z0-9._-]+==\S+ .*\\$", pin), pin
            assert following.startswith("    --hash=sha256:"), pin


def test_a_lock_is_installed_as_it_is() -> None:
    """With dependencies pip asks the index for more, so that a new release fails the installation."""
    makefile = (ROOT / "Makefile").read_text()
    (locked,) = re.findall(r"^LOCKED := (.*)$", makefile, re.MULTILINE)
    assert {"--no-deps", "--require-hashes"} <= set(locked.split())
    for options, name in re.findall(r"/pip (.*)-r (requirements\S*)", makefile):
        assert options.strip() == "$(LOCKED)" or "transformers" in name, name


def test_the_licence_of_every_package_is_listed_and_no_other() -> None:
    assert sorted(row["package"] for row in licence_rows()) == sorted(
        {component.name for component in packages()}
    )


def test_the_listed_licences_are_those_that_the_packages_declare() -> None:
    installed = {row["package"]: row for row in licence_rows() if row["declared"] != "?"}
    looked_at = 0
    for name, row in installed.items():
        try:
            found = declared(name)
        except importlib.metadata.PackageNotFoundError:
            # The packages of an extra may be missing.
            assert f"\n{name}==" not in "\n" + (ROOT / LOCKED[0]).read_text(), name
            continue
        looked_at += 1
        assert found == row["declared"], f"{name}: check its licence, and correct the list"
    assert looked_at > 60


def test_licences_that_require_a_notice_have_one() -> None:
    notice = (ROOT / "NOTICE").read_text()
    for component in (*packages(), *CARRIED):
        if ASKS_FOR_NOTICE.search(component.licence):
            assert component.name.removesuffix(" data") in notice, component.name


def test_the_list_of_components_names_what_packages_carry() -> None:
    carried = {component.name: component for component in CARRIED}
    names = {component.name for component in packages()}
    assert {each.carrier for each in CARRIED if each.carrier} <= names
    assert carried["libsndfile"].version == soundfile.__libsndfile_version__
    assert soxr.__libsoxr_version__.startswith(carried["libsoxr"].version)
    model = carried["Kokoro-82M, int8 ONNX"]
    assert model.hashes == (("sha256", files.MODEL_SHA256),)
    styles = carried["kokoro-js"]
    assert (styles.name, styles.version) == (files.STYLES_PACKAGE, files.STYLES_VERSION)
    assert styles.hashes == (("sha512", b64decode(files.STYLES_SHA512).hex()),)
    assert all(component.hashes for component in packages())
