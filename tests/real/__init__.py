import pytest

pytestmark = pytest.mark.long
