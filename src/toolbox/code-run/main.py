"""Runs a caller's program, which follows on standard input, as the main module.

Python does this by itself (`python3 -`), but then the program has no file. Some of what programs use wants one:
`multiprocessing` runs the main file again in each child that it spawns, and `inspect` reads it. So the program gets a
file in memory, which is gone when the process ends. Error messages name `<stdin>` and the program's own lines only.
"""

import os
import sys

NAME = "<stdin>"

# Words in a program that show that it checks whether it runs in a spawned child.
GUARDS = (b"__main__", b"current_process")


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


class ImportWatch:
    """Calls `change` with a module of the standard library as soon as that has been imported. Most programs never import it,
    and it takes as long to import as they take to run: so it is not imported for this."""

    def __init__(self, name, change):
        self.name = name
        self.change = change

    def find_spec(self, name, _path=None, _target=None):
        if name != self.name:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            self.change(module)

        spec.loader.exec_module = exec_module
        return spec


def give_lines(source):
    """Tracebacks and `inspect` read the lines of a name that is no file from linecache."""

    def change(linecache):
        lines = source.decode("utf-8", "replace").splitlines(True)
        linecache.cache[NAME] = (len(source), None, lines, NAME)

    return change


def spare_children(spawn):
    """A spawned child runs the main file again. Without a guard in it, that child would spawn too, fail, and be replaced for
    ever. So a child of such a program runs without the main file, as under `python3 -`."""
    prepare = spawn.get_preparation_data

    def get_preparation_data(name):
        data = prepare(name)
        data.pop("init_main_from_path", None)
        return data

    spawn.get_preparation_data = get_preparation_data


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
    # Decode the code first, so that a line which names an encoding has no effect.
    code = compile(source.decode("utf-8-sig"), NAME, "exec", dont_inherit=True)
    give_file(module, source)
    sys.meta_path.insert(0, ImportWatch("linecache", give_lines(source)))
    if not any(guard in source for guard in GUARDS):
        sys.meta_path.insert(0, ImportWatch("multiprocessing.spawn", spare_children))
    exec(code, module.__dict__)


run(sys.stdin.buffer.read())
