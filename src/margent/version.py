"""The version, in one place."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("margent")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0+unknown"
