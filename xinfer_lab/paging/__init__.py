"""Paging: a pool of pages in host and device memory under one page table. Knows devices, and no model."""
