"""Runs a caller's program, which follows on standard input, as the main module.

With `python3 -`, the program would have no file. Some modules need one: `multiprocessing` runs the main file again in each
child that it spawns, and `inspect` reads the file. So this module gives the program a file in memory, which disappears when
the process ends. Error messages name `<stdin>`, and contain only lines of the program.
"""

import os
import sys

NAME = "<stdin>"

# Words in a program that show that it checks whether it runs in a spawned child.
GUARDS = (b"__main__", b"current_process")


def give_file(module, source):
    """Gives the program a file in memory. If no such file can be made, the program runs without a file."""
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
    """Calls `change` with a module of the standard library when the program has imported that module. Does not import the
    module itself: most programs never need it, and the import takes as long as a short program."""

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
    """Puts the program's lines into linecache, from which tracebacks and `inspect` read the lines of `<stdin>`."""

    def change(linecache):
        lines = source.decode("utf-8", "replace").splitlines(True)
        linecache.cache[NAME] = (len(source), None, lines, NAME)

    return change


def spare_children(spawn):
    """Makes the children of a program without a guard (`GUARDS`) run without the main file, as under `python3 -`. Otherwise
    each child would run the main file, spawn children itself and fail, and the program would replace it again and again."""
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
