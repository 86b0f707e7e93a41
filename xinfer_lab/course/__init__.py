"""What an instructor runs: the release of the labs."""
