"""Services of this machine, in this process, for tests that ask them."""

import pytest
from served import running


@pytest.fixture
def served(tmp_path):
    with running(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One service for tests that leave nothing behind that others would notice."""
    with running(tmp_path_factory.mktemp("serve")) as found:
        yield found


@pytest.fixture
def serving(tmp_path):
    """Services with settings of their own."""

    def made(name="serve", **options):
        return running(tmp_path / name, **options)

    return made
