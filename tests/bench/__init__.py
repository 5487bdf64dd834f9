"""Tests of the benchmark's own arithmetic and pages; the figures themselves are asserted nowhere."""
