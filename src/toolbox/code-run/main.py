"""Runs a caller's program, which follows on standard input, as the main module.

Python does this by itself (`python3 -`), but then the program has no file. Some of what programs use wants one:
`multiprocessing` runs the main file again in each child that it spawns, and `inspect` reads it. So the program gets a
file in memory, which is gone when the process ends. Error messages name `<stdin>` and the program's own lines only.
"""

import os
import sys

NAME = "<stdin>"


def give_file(module, source):
    """Where there is no room for a file, or no way to make one, the program runs without."""
    try:
        file = os.memfd_create("main.py")
        os.truncate(file, len(source))
        with os.fdopen(os.dup(file), "wb") as writing:
            writing.write(source)
        os.lseek(file, 0, os.SEEK_SET)
    except (AttributeError, OSError):
        return
    module.__file__ = "/proc/%d/fd/%d" % (os.getpid(), file)


class LinecacheWatch:
    """Tracebacks and `inspect` read the lines of a name that is no file from linecache. Most programs never load it, and it
    takes as long to load as they take to run: so its cache is filled when it comes."""

    def __init__(self, source):
        self.source = source

    def find_spec(self, name, _path=None, _target=None):
        if name != "linecache":
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            lines = self.source.decode("utf-8", "replace").splitlines(True)
            module.cache[NAME] = (len(self.source), None, lines, NAME)

        spec.loader.exec_module = exec_module
        return spec


def run(source):
    module = sys.modules["__main__"]
    sys.argv[0] = "-"
    code = None

    def show_error(kind, value, trace):
        while trace is not None and trace.tb_frame.f_code is not code:
            trace = trace.tb_next
        value.__traceback__ = trace
        sys.__excepthook__(kind, value, trace)

    sys.excepthook = show_error
    for name in [name for name in module.__dict__ if not name.startswith("__")]:
        del module.__dict__[name]
    code = compile(source, NAME, "exec", dont_inherit=True)
    give_file(module, source)
    sys.meta_path.insert(0, LinecacheWatch(source))
    exec(code, module.__dict__)


run(sys.stdin.buffer.read())
