"""`margent methods`."""

from __future__ import annotations

import click

from margent.cli.console import say, say_json
from margent.cli.options import json_option


@click.command(short_help="List the methods and where they come from.")
@click.option("--settings", is_flag=True, help="Also what `--set NAME=VALUE` may change, with the values that are set.")
@json_option
def methods(settings: bool, as_json: bool) -> None:
    """List the methods: what each buys, what it is good at, what it costs, and where it comes from.

    \b
    margent methods
    margent methods --settings
    """
    from margent.methods import DEFAULT_METHOD, METHODS, SYNTHESIZERS
    from margent.settings import settings_of

    if as_json:
        entries = [
            {
                "name": method.name,
                "default": method.name == DEFAULT_METHOD,
                "buys": method.buys,
                "goodAt": method.good_at,
                "cost": method.cost,
                "synthesizer": method.synthesizer.name,
                "source": method.source,
                "package": method.package,
                "settings": settings_of(method.collector) | settings_of(method.synthesizer),
            }
            for method in METHODS
        ]
        say_json({"methods": entries, "synthesizers": {each.name: settings_of(each) for each in SYNTHESIZERS}})
        return
    for method in METHODS:
        default = " (default)" if method.name == DEFAULT_METHOD else ""
        say(f"{method.name}{default}")
        say(f"  buys      {method.buys}")
        say(f"  good at   {method.good_at}")
        say(f"  cost      {method.cost}")
        say(f"  records   synthesizer {method.synthesizer.name}")
        say(f"  source    {method.source}")
        if method.package:
            say(f"  needs     pip install 'margent[{method.synthesizer.name}]'")
        if settings:
            for name, value in (settings_of(method.collector) | settings_of(method.synthesizer)).items():
                say(f"  --set     {name}={value}")
    say(f"synthesizers for `margent resample`: {', '.join(each.name for each in SYNTHESIZERS)}")
