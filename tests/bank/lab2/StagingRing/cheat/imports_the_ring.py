"""
wrong: takes the package's own ring
check: ring_alignment, ring_wrap, ring_wait, ring_refuse
phrase: holds the answer
"""

from xinfer_lab.residency.staging import StagingRing
