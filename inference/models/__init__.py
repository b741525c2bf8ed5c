"""The tables of the catalog, of backends and deployments, and of diagnostic captures."""

from inference.models.backends import Backend, Deployment
from inference.models.captures import CaptureReading, DiagnosticCapture
from inference.models.catalog import (
    ModelEntry,
    ModelLimit,
    Price,
    PriceWithdrawal,
    Unchangeable,
    WeightsRecord,
)

__all__ = [
    "Backend",
    "CaptureReading",
    "Deployment",
    "DiagnosticCapture",
    "ModelEntry",
    "ModelLimit",
    "Price",
    "PriceWithdrawal",
    "Unchangeable",
    "WeightsRecord",
]
