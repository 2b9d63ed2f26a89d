"""A script that answers commands: lines of JSON on standard input and output."""

import json, os, sys


class Skip(Exception):
    """Says why an engine cannot take a model, or does not have what is asked."""


def serve(session):
    """Answers each command with what the session's method of that name returns."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of engines must not mix with the answers

    def say(answer):
        out.write(json.dumps(answer) + "\n")
        out.flush()

    say({})
    for line in sys.stdin:
        command = json.loads(line)
        try:
            say(getattr(session, command.pop("command"))(**command))
        except Skip as reason:
            say(dict(skipped=str(reason)))
        except Exception as error:
            say(dict(error=f"{type(error).__name__}: {error}"[:300]))
