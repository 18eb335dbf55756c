"""The manual page and the shells' completions, drawn from the commands themselves: share/, which the wheel carries."""
import re
from pathlib import Path

from typer._completion_shared import get_completion_script

from git_notes_consolidation import __version__
from git_notes_consolidation.apps.cli.program import program

SHARE = Path(__file__).resolve().parent.parent / "share"
COMPLETIONS = {"bash": "bash-completion/completions/gnc", "zsh": "zsh/site-functions/_gnc", "fish": "fish/vendor_completions.d/gnc.fish"}


def roff(text):
    "A text as troff reads it: no line is a request, a hyphen is one, and Markdown's code is bold."
    text = " ".join((text or "").split()).replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"`([^`]+)`", r"\\fB\1\\fP", re.sub(r"^([.'])", r"\\&\1", text))


def options(command):
    "Each argument and option with its help."
    for p in command.params:
        if getattr(p, "hidden", False) or not getattr(p, "help", ""): continue
        names = ", ".join((*p.opts, *p.secondary_opts)) if p.param_type_name == "option" else (p.metavar or p.name.upper())
        value = f"{p.metavar or p.name.upper()}" if p.param_type_name == "option" and not p.is_flag else ""
        yield from (".TP", rf"\fB{roff(names)}\fP {roff(value)}".rstrip(), roff(p.help))


def commands(group, path=""):
    "Each command with what is below it."
    for name, c in group.commands.items():
        if getattr(c, "hidden", False): continue
        yield from (f".SS {roff(f'gnc {path}{name}')}", roff(c.help), *options(c))
        yield from commands(c, f"{path}{name} ") if hasattr(c, "commands") else ()


def page():
    "The page."
    whole = program()
    return "\n".join([f'.TH GNC 1 "" "git-notes-consolidation {__version__}"', ".SH NAME", r"gnc \- keep the memories in git notes small, current and trusted",
                      ".SH SYNOPSIS", r"\fBgnc\fP [OPTIONS] COMMAND [ARGS]...", ".SH DESCRIPTION", roff(whole.help), ".SH OPTIONS", *options(whole),
                      ".SH COMMANDS", *commands(whole), ".SH EXIT STATUS", roff(whole.epilog)]) + "\n"


def main():
    "Write them."
    scripts = {to: get_completion_script(**{"prog_name": "gnc", "complete_var": "_GNC_COMPLETE", "shell": shell}) for shell, to in COMPLETIONS.items()}
    for to, text in ({"man/man1/gnc.1": page()} | scripts).items():
        (SHARE / to).parent.mkdir(parents=True, exist_ok=True)
        (SHARE / to).write_text(text, encoding="utf-8")


if __name__ == "__main__": main()
