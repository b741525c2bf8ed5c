import pytest

pytestmark = pytest.mark.every_database
