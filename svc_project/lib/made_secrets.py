"""Secrets that an installation makes for itself, so that the embedded default is safe to run as it is."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def made_once(path: Path) -> str:
    """Return the secret in ``path``, which is made by the first process that asks for it.

    With more than one host every host must be given the same value instead.
    """
    if not path.exists():
        unnamed = Path(f"{path}.{os.getpid()}")
        descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
        try:
            os.link(unnamed, path)
        except FileExistsError:
            pass
        finally:
            unnamed.unlink()
    return path.read_text(encoding="utf-8").strip()
