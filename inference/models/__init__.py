"""The tables of the catalog, of backends and deployments, and of diagnostic captures."""

from inference.models.backends import Backend, Deployment
from inference.models.captures import CaptureReading, DiagnosticCapture, FailedContent
from inference.models.catalog import (
    ModelEntry,
    ModelLimit,
    Price,
    PriceWithdrawal,
    Unchangeable,
    WeightsRecord,
)
from inference.models.last_tests import BackendTest

__all__ = [
    "Backend",
    "BackendTest",
    "CaptureReading",
    "Deployment",
    "DiagnosticCapture",
    "FailedContent",
    "ModelEntry",
    "ModelLimit",
    "Price",
    "PriceWithdrawal",
    "Unchangeable",
    "WeightsRecord",
]
