"""Attacks on our own door: bounds, gates, planted privacy bugs, the self test.

A gate (`gates_*`) looks at the door from one side and raises AssertionError where the promise is seen to be broken.
Gates reach the code through its modules, so that a planted bug (`planted_*`) is met where a real one would be.
"""
