"""Attacks on our own door: statistical lower bounds on the privacy loss, and the self test made of them.

An audit plays the adversary who chose all records but one. It cannot prove a promise (`proofs/` does); it can
show that the code breaks one. Everything here runs on made-up tables, never on a user's.
"""
