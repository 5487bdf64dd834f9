"""Attacks on a running server: one module per attack surface, readable as a list of promises.

The test of the layer that shows a defect stands beside that layer's other tests; here each is tried
once more from outside, over HTTP, against real processes. `make e2e` runs them.
"""
