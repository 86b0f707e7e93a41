"""The bank of Lab 1."""

from tests.bank_tests import *  # noqa: F403
