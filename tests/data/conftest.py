"""What the tests of the data sets share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.data.mirror import Server


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
