"""The bank of Lab 6."""

from tests.bank_tests import *  # noqa: F403
