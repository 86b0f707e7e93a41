"""The bank of Lab 2."""

from tests.bank_tests import *  # noqa: F403
