"""Hashes the passwords of tests without the work that makes real ones hard to guess."""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickHasher(PBKDF2PasswordHasher):
    """One iteration. A gateway of its own process checks these hashes, since each has its number."""

    iterations = 1
