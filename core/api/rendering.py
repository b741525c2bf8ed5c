"""DRF's renderer for both surfaces, in a module that DRF can import during its own import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from rest_framework.renderers import BaseRenderer


class JsonRenderer(BaseRenderer):
    """Encodes JSON with msgspec, whatever ``Accept`` says: these surfaces send nothing else."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else msgspec.json.encode(data)
