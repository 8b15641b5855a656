"""`margent completion`: the lines that teach a shell to complete commands and options."""

from __future__ import annotations

import click

from margent.cli.console import say

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Completion of commands and options for your shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what SHELL needs to complete margent's commands and options with the tab key.

    Nothing is installed and no file is changed: put the line below into the shell's own start file.

    \b
    bash, in ~/.bashrc:                   eval "$(margent completion bash)"
    zsh, in ~/.zshrc, after compinit:     eval "$(margent completion zsh)"
    fish, in ~/.config/fish/config.fish:  margent completion fish | source
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    # The template is filled in here: click's own way would first start a Bash to see its version.
    made = kind(context.find_root().command, {}, "margent", "_MARGENT_COMPLETE")
    say(kind.source_template % made.source_vars(), lines=True)
