"""Which method for a table like mine? Compare on public data, before the private table is touched.

    python examples/04_compare_methods.py

Choosing by scores on the private table would be a release of its own, which no budget pays for. So the comparison uses
a public table: here the RAND Health Insurance Experiment from statsmodels (pip install 'margent[demo]').
"""

from __future__ import annotations

from statsmodels.datasets import randhie

from margent.demonstration import SCHEMA
from margent.internal.sweep import sweep
from margent.schema.read import schema_from_json

METHODS = ["dense", "privsyn", "privbayes", "independent"]


def main() -> None:
    frame = randhie.load_pandas().data.astype({"lncoins": str})
    schema = schema_from_json(SCHEMA)
    made = sweep(frame, schema, epsilons=["0.5", "2"], methods=METHODS, on_public_data=True)
    made.save("methods")  # INTERNAL-sweep.html: error against epsilon, beside both yardsticks

    (pairs,) = [each for each in made.document["metrics"] if each["key"] == "tvd-2"]
    print(f"{pairs['title']} at epsilon {made.document['epsilons']}; less is better")
    for name, means in zip(made.document["methods"], pairs["means"], strict=True):
        print(f"  {name:12}", *(f"{value:.4f}" for value in means))


if __name__ == "__main__":
    main()
