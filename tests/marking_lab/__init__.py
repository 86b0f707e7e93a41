"""A small lab for the tests of marking: its pieces are added to a copy of the package."""
