"""The stateful Python of one interpreter context. Runs inside the sandbox, as the sandbox's user.

Reads one request per line on standard input, {"id", "code", "envs"}, and writes one message per line on standard output:
{"id", "type": "stdout" | "stderr", "text"}, {"id", "type": "error", "name", "value", "traceback"}, {"id", "type": "done"}.
Whatever the code or its child processes print arrives as text in order; SIGINT interrupts the code and keeps the state.
"""

import ast
import codecs
import json
import os
import signal
import sys
import threading
import traceback

SOURCE = "<code>"
CHUNK = 65536


def keep_away_from_code(descriptor):
    """Moves a descriptor to a high number, closed in child processes, so that code does not meet it by accident."""
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 200)


requests = os.fdopen(keep_away_from_code(0), "r", encoding="utf-8", newline="\n")
messages = keep_away_from_code(1)
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, 0)
os.close(null)

own_pid = os.getpid()
running = None
telling = threading.Lock()


def tell(kind, **fields):
    line = (json.dumps({"id": running, "type": kind, **fields}) + "\n").encode()
    while line:
        line = line[os.write(messages, line) :]


class Stream:
    """A pipe in place of descriptor 1 or 2: what is written to it, by whatever process, becomes messages."""

    def __init__(self, name, descriptor):
        self.name = name
        self.end, writing = os.pipe()
        self.end = keep_away_from_code(self.end)
        os.dup2(writing, descriptor)
        os.close(writing)
        os.set_blocking(self.end, False)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def pass_on(self):
        """Tells what is in the pipe now; returns whether there was anything. Called with `telling` held."""
        try:
            data = os.read(self.end, CHUNK)
        except BlockingIOError:
            return False
        text = self.decoder.decode(data)
        if text:
            tell(self.name, text=text)
        return bool(data)


streams = (Stream("stdout", 1), Stream("stderr", 2))


def watch():
    import select

    ready = select.poll()
    for stream in streams:
        ready.register(stream.end, select.POLLIN)
    by_end = {stream.end: stream for stream in streams}
    while True:
        for end, _ in ready.poll():
            with telling:
                by_end[end].pass_on()


threading.Thread(target=watch, daemon=True).start()


def pass_on_everything():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    with telling:
        for stream in streams:
            while stream.pass_on():
                pass


def line_buffered(descriptor):
    return os.fdopen(os.dup(descriptor), "w", buffering=1, encoding="utf-8", errors="replace")


sys.stdout = sys.__stdout__ = line_buffered(1)
sys.stderr = sys.__stderr__ = line_buffered(2)
sys.argv = [""]
sys.path.insert(0, "")


def on_interrupt(_signal, _frame):
    if running is not None:
        raise KeyboardInterrupt


signal.signal(signal.SIGINT, on_interrupt)

# The code's own module: what it defines lives in a real `__main__`, so pickling and `import __main__` work.
import types

module = types.ModuleType("__main__")
module.__builtins__ = __builtins__
sys.modules["__main__"] = module


def user_frames(error):
    """The traceback from the first frame of the user's own code on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != SOURCE:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def remember_source(code):
    import linecache

    linecache.cache[SOURCE] = (len(code), None, code.splitlines(keepends=True), SOURCE)


def run(code):
    remember_source(code)
    tree = ast.parse(code, SOURCE)
    exec(compile(tree, SOURCE, "exec", dont_inherit=True), module.__dict__)


for line in requests:
    request = json.loads(line)
    previous = dict(os.environ)
    os.environ.update(request.get("envs") or {})
    failure = None
    try:
        running = request["id"]
        run(request["code"])
    except SystemExit:
        pass
    except BaseException as error:
        failure = error
    if os.getpid() != own_pid:
        # The code forked, and this is the child that ran past its end.
        os._exit(0)
    # From here on an interrupt is late: the run is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pass_on_everything()
    with telling:
        if failure is not None:
            try:
                tell("error", name=type(failure).__name__, value=str(failure), traceback=user_frames(failure))
            except Exception:
                tell("error", name=type(failure).__name__, value="", traceback="")
        tell("done")
        running = None
    failure = None
    for name in [name for name in os.environ if name not in previous]:
        del os.environ[name]
    os.environ.update(previous)
    signal.signal(signal.SIGINT, on_interrupt)
