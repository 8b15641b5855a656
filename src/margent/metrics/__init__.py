"""How good a synthetic table is, one metric a file: score, yardstick, paragraph.

A metric sees coded tables that somebody gives it and opens none itself; `margent.internal` brings the real one.
Whatever a metric says of a real table is exact and was not paid for: it is for the operator alone.
"""
