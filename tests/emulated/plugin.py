"""For pytest (-p plugin): the ROCm device that the Python tests play runs the code itself. See check.py."""

import check


def pytest_configure(config):
    # The runtime that the tests will open, by then already told who runs what it is given.
    check.Session.from_environment().attach()
