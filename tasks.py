"""The command line as a program, run by ``./invokew``. The verbs are in ``bench/verbs.py``."""

from __future__ import annotations


def main() -> None:
    """Run the verb that the command line names. Does not return."""
    from bench import bugs

    with bugs.reported():
        from bench import command_line, verbs

        command_line.main(verbs)


if __name__ == "__main__":
    main()
