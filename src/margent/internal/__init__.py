"""The operator's own comparison with the real table. Every output is INTERNAL: not differentially private.

Nothing that makes or writes a release imports this package.
"""
