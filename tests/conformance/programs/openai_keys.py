"""A plug-in of pytest that gives openai-python's tests a key that the gateway knows."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Replace the made-up key in the conftest.py of the tests."""
    keys = [
        plugin
        for plugin in config.pluginmanager.get_plugins()
        if hasattr(plugin, "api_key") and hasattr(plugin, "admin_api_key")
    ]
    assert len(keys) == 1, "the tests of this openai keep their key elsewhere"
    keys[0].api_key = os.environ["CONFORMANCE_KEY"]
