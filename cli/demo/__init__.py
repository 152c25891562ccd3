"""`registry demo`: all of Tallystick at work, in real processes, held to what it promises."""


def run(*, json_output: bool, keep: bool) -> int:
    """Perform the demo; return 0 if every check held, else 1.

    Everything runs on free ports of the loopback and in a new folder for temporary data. At the
    end, and on Ctrl-C or SIGTERM, all of it is stopped and removed, unless ``keep`` is set.

    Args:
        json_output: Write one JSON object instead of the story.
        keep: Leave everything running, and say how to go on and how to stop it.

    Raises:
        KeyboardInterrupt: The demo was interrupted; everything is stopped.
    """
    from cli.demo.performance import perform

    return perform(json_output=json_output, keep=keep)
