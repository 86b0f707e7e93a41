"""The bank of Lab 5."""

from tests.bank_tests import *  # noqa: F403
