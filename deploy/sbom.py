"""``make sbom``: the components of an installation as a CycloneDX 1.6 document.

It is generated from the locked requirements, so it needs no installation; run it with .venv-tools.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from cyclonedx.contrib.hash.factories import HashTypeFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component as Entry
from cyclonedx.model.component import ComponentType
from cyclonedx.model.dependency import Dependency
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from deploy.components import CARRIED, ROOT, Component, packages


def entry(component: Component) -> Entry:
    """The CycloneDX entry of ``component``; hashes of a package are those of its distributions."""
    hashes = [
        HashTypeFactory().from_composite_str(f"{kind}:{value}") for kind, value in component.hashes
    ]
    is_package = component.purl.startswith("pkg:pypi/")
    where = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(f"https://pypi.org/project/{component.name}/{component.version}/"),
        hashes=hashes,
    )
    return Entry(
        name=component.name,
        version=component.version,
        type=ComponentType.MACHINE_LEARNING_MODEL if component.is_model else ComponentType.LIBRARY,
        bom_ref=component.purl,
        purl=PackageURL.from_string(component.purl),
        licenses=[]
        if component.licence == "NOASSERTION"
        else [LicenseExpression(component.licence)],
        hashes=[] if is_package else hashes,
        external_references=[where] if is_package else [],
    )


def document() -> str:
    """Return the document, validated against the schema. Raises ``ValueError`` when it is invalid."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    root = Entry(
        name="svc", version=project["version"], type=ComponentType.APPLICATION, bom_ref="svc"
    )
    bom = Bom()
    bom.metadata.component = root
    listed = packages()
    refs = {component.name: component.purl for component in listed}
    entries = {component.purl: entry(component) for component in (*listed, *CARRIED)}
    bom.components.update(entries.values())
    inside: dict[str, list[Dependency]] = {}
    for component in CARRIED:
        if component.carrier:
            inside.setdefault(refs[component.carrier], []).append(
                Dependency(entries[component.purl].bom_ref)
            )
    bom.dependencies.add(
        Dependency(root.bom_ref, [Dependency(each.bom_ref) for each in entries.values()])
    )
    for purl, each in entries.items():
        bom.dependencies.add(Dependency(each.bom_ref, inside.get(purl, [])))
    text: str = JsonV1Dot6(bom).output_as_string(indent=2)
    if found := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"The document does not fit the schema: {found}")
    return text


def main() -> None:
    """Write the document to the file that the command line names."""
    file = Path(sys.argv[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(document(), encoding="utf-8")
    sys.stdout.write(f"wrote {file}\n")


if __name__ == "__main__":
    main()
