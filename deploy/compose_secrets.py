"""Make the secrets that ``deploy/compose.yaml`` mounts, each in a file; what exists stays.

python3 deploy/compose_secrets.py [DIRECTORY], which is ``deploy/secrets`` by default.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

NAMES = (
    *("secret_key", "key_peppers", "capture_keys", "clone_keys"),
    *("metrics_token", "database_password"),
)
HOSTS = ("ai.example.com", "speech.example.com")


def main(directory: Path) -> None:
    """Make the directory, every secret that is missing, and a certificate that signs itself."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    for name in NAMES:
        _write(directory / name, secrets.token_urlsafe(48))
    password = (directory / "database_password").read_text().strip()
    _write(directory / "database_url", f"postgres://svc:{password}@postgres:5432/svc")
    chain, key = directory / "fullchain.pem", directory / "privkey.pem"
    if not chain.exists():
        names = ",".join(f"DNS:{host}" for host in HOSTS)
        subprocess.run(  # noqa: S603  # every word is ours
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "90"),
                *("-pkeyopt", "ec_paramgen_curve:P-256", "-subj", f"/CN={HOSTS[0]}"),
                *("-addext", f"subjectAltName={names}", "-keyout", str(key), "-out", str(chain)),
            ],
            check=True,
            capture_output=True,
        )


def _write(path: Path, value: str) -> None:
    if not path.exists():
        path.write_text(value + "\n")
        # Compose mounts files as they are, and the gateway is a user of its own; the directory keeps
        # the others of this machine out.
        path.chmod(0o444)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("secrets"))
