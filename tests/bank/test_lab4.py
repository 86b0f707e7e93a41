"""The bank of Lab 4."""

from tests.bank_tests import *  # noqa: F403
