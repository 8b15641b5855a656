# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
PIP_QUIET ?= --quiet
# Tests run side by side, a file at a time; each process takes up to 4 GB (WORKERS=0: one after the other, in this one).
WORKERS ?= 2
# As many as there are cores: one more on two cores took a fifth longer, in CPU seconds too.
AUDIT_WORKERS ?= 2
AT_FULL_SIZE = MARGENT_AUDIT=1 .venv/bin/python -m pytest -n $(AUDIT_WORKERS) --dist load --maxschedchunk 1

.PHONY: wheel minimal sbom demo test coverage lint types docs audit long compare-peers clean

demo: .venv-demo/ready
	rm -rf margent-demo
	.venv-demo/bin/margent demo -o margent-demo

test: .venv/ready
	.venv/bin/python -m pytest -n $(WORKERS) --dist loadgroup
	.venv/bin/python -m pytest --doctest-modules src docs --doctest-glob='*.md' -p no:randomly

# Lines of the package that the tests run; what other processes run (Spark's tasks, killed writers) is not seen.
coverage: .venv/ready
	.venv/bin/python -m pytest -n $(WORKERS) --dist loadgroup --cov --cov-report=term-missing:skip-covered --cov-fail-under=95

lint: .venv/ready
	.venv/bin/ruff check src tests bench distribution examples docs/conf.py docs/extensions
	.venv/bin/ruff format --check src tests bench distribution examples docs/conf.py docs/extensions

types: .venv/ready
	.venv/bin/mypy

# The site, into docs/_build/html; a warning (a dead link, a page in no list, a word of code that cannot be read) is an error.
docs: .venv/ready
	.venv/bin/python -m sphinx -b html -W --keep-going -n -q docs docs/_build/html

# The long proofs: every scale of the grid, wide enumerations, long statistical runs, fuzzers, kills, a million neighbors.
audit: .venv/ready
	$(AT_FULL_SIZE) --durations=40 tests/privacy tests/audits tests/hostile

# The long forms of tests that prove no privacy: interrupted runs, round trips, damaged pages, every real table by more methods.
long: .venv/ready
	$(AT_FULL_SIZE) --durations=10 tests/test_round_trip.py tests/test_real_tables.py tests/cases tests/resume tests/tables/test_parquet_pages.py

# What is installed: the wheel in an empty environment, the oldest allowed dependencies, a bill of materials.
wheel:
	$(PYTHON) distribution/wheel.py

minimal:
	$(PYTHON) distribution/minimal.py

sbom:
	$(PYTHON) distribution/sbom.py --fresh > sbom.cdx.json

# Margent beside other packages (each in an environment of its own, in .venv-peers) on one table, into the README's table.
# Forty minutes on two cores; what has been run is kept. bench/README.md says what each was given.
compare-peers: .venv/ready
	@test -n "$(TABLE)" || { echo "say which table: make compare-peers TABLE=path/to/folder (a table and its schema.json)"; exit 2; }
	.venv/bin/python bench/peers/compare.py "$(TABLE)" --epsilon 1 --draws 1 --limit 600 --page README.md $(if $(TITLE),--title "$(TITLE)")

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install $(PIP_QUIET) --upgrade 'pip>=25.1'
	.venv/bin/python -m pip install $(PIP_QUIET) --editable . --group test --group lint --group docs
	touch $@

.venv-demo/ready: pyproject.toml
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install $(PIP_QUIET) --editable '.[demo]'
	touch $@

clean:
	rm -rf .venv .venv-demo .venv-peers margent-demo docs/_build docs/proofs docs/project docs/reference/commands.md
