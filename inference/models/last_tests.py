"""The last test of each backend: by an operator, or the cheap one that upkeep repeats."""

from __future__ import annotations

from typing import Final

from django.db import models

from core import clock
from inference.models.backends import Backend

LONGEST_WORDS: Final = 500


class Verdict(models.TextChoices):
    PASSED = "passed"
    UNLISTED = "unlisted", "answers, but does not list a model"
    FAILED = "failed"


class BackendTest(models.Model):
    """What the last test of a backend found, and when the next is due.

    A table of its own: a result moves no stamp of the catalog, which every worker would load again.
    """

    backend = models.OneToOneField(Backend, on_delete=models.CASCADE, related_name="last_test")
    due_at = models.DateTimeField(default=clock.now)
    tested_at = models.DateTimeField(null=True)
    result = models.CharField(max_length=16, choices=Verdict, blank=True)
    words = models.CharField(max_length=LONGEST_WORDS, blank=True)

    class Meta:
        verbose_name = "test of a backend"
        verbose_name_plural = "tests of backends"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.backend}: {self.result or 'not tested yet'}"
