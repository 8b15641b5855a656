"""Answers to questions about a release: tables over a few columns with error bars. Free: post-processing."""
