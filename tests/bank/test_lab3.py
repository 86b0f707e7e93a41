"""The bank of Lab 3."""

from tests.bank_tests import *  # noqa: F403
