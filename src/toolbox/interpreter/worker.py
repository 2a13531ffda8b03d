"""The Python process of one interpreter context, which keeps variables between runs. Runs as the sandbox's user.

Reads one request per line from standard input: {"id", "code", "envs", "deadline"}. Writes one message per line to standard
output:

{"id", "type": "start", "deadline"}
{"id", "type": "stdout" | "stderr", "text"}: output of the code and its child processes, in order
{"id", "type": "error", "name", "value", "traceback"}
{"id", "type": "display", "formats"}
{"id", "type": "done"}

Output that is printed while no code runs has the id null. The request {"ask"} gets the answer
{"id": null, "type": "free", "asked"} when no code runs any more; the gate sends it after it has lost messages. SIGINT
interrupts the code, and the variables stay. Lines that are no valid request are skipped, such as a line whose sender was
killed while it wrote the line.
"""

import __future__
import ast
import base64
import codecs
import collections
import faulthandler
import fcntl
import importlib
import json
import linecache
import os
import re
import select
import signal
import sys
import threading
import time
import traceback
import types

CHUNK = 32 * 1024
LONGEST_TEXT = 16 * 1024
REMEMBERED_CELLS = 256
LATE_SECONDS = 5
CANCEL_SECONDS = 1
LONGEST_DISPLAY = 256 * 1024
LONGEST_WATCH_SECONDS = 30 * 24 * 3600


def keep_away_from_code(descriptor):
    """Moves a descriptor to a high number, so that code does not use it by accident. Child processes do not inherit it."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 200)


requests = os.fdopen(keep_away_from_code(0), "rb")
messages = keep_away_from_code(1)
nowhere = keep_away_from_code(os.open(os.devnull, os.O_WRONLY))
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, 0)
os.close(null)

own_pid = os.getpid()
own_name = keep_away_from_code.__code__.co_filename
running = None
telling = threading.Lock()


def tell(kind, **fields):
    """Writes a message. The caller holds the lock `telling`."""
    line = (json.dumps({"id": running, "type": kind, **fields}) + "\n").encode()
    while line:
        line = line[os.write(messages, line) :]


class Stream:
    """A pipe in place of descriptor 1 or 2. Everything that any process writes to it becomes messages."""

    def __init__(self, name, descriptor):
        self.name = name
        end, writing = os.pipe()
        self.end = keep_away_from_code(end)
        os.close(end)
        os.dup2(writing, descriptor)
        os.close(writing)
        os.set_blocking(self.end, False)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def pass_on(self):
        """Writes at most CHUNK bytes from the pipe as a message. Returns whether there were any. The caller holds `telling`."""
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
    ready = select.poll()
    for stream in streams:
        ready.register(stream.end, select.POLLIN)
    by_end = {stream.end: stream for stream in streams}
    while True:
        for end, _ in ready.poll():
            with telling:
                by_end[end].pass_on()


threading.Thread(target=watch, daemon=True).start()


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def pass_on_everything():
    flush()
    with telling:
        for stream in streams:
            # Child processes may write without end. Read only this often, so that the run can still end.
            for _ in range(64):
                if not stream.pass_on():
                    break


def line_buffered(descriptor):
    return os.fdopen(os.dup(descriptor), "w", buffering=1, encoding="utf-8", errors="replace")


sys.stdout = sys.__stdout__ = line_buffered(1)
sys.stderr = sys.__stderr__ = line_buffered(2)


def open_input():
    """Makes sys.stdin from a copy of descriptor 0, because exit() closes sys.stdin."""
    sys.stdin = sys.__stdin__ = os.fdopen(os.dup(0), encoding="utf-8")


open_input()
sys.argv = [""]
# Callers upload files to /tmp, including modules. Modules in the working directory come first.
sys.path.append("/tmp")


def on_interrupt(_signal, _frame):
    if running is not None:
        raise KeyboardInterrupt


signal.signal(signal.SIGINT, on_interrupt)

# The module of the code. It is a real `__main__`, so pickling and `import __main__` work with what the code defines.
module = types.ModuleType("__main__")
module.__builtins__ = __builtins__
sys.modules["__main__"] = module

cells = collections.deque()
count = 0


def remember_source(code):
    """Stores the code of a run, so that later tracebacks can show its lines. Forgets the code of the oldest runs."""
    global count
    count += 1
    name = f"<cell {count}>"
    cells.append(name)
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    if len(cells) > REMEMBERED_CELLS:
        linecache.cache.pop(cells.popleft(), None)
    return name


CO_COROUTINE = 0x80
awaits = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
futures = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
loop = None


def wait_for(coroutine):
    """Runs a coroutine. All runs share one event loop, so the tasks of one run still exist in the next."""
    global loop
    # Import asyncio only when code needs it, because it loads slowly and most code never waits.
    import asyncio

    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    finally:
        # Only an interrupt leaves the task undone here.
        if not task.done():
            task.cancel()
            loop.run_until_complete(asyncio.wait([task], timeout=CANCEL_SECONDS))


def awaits_at_top(code):
    return bool(code.co_flags & CO_COROUTINE)


async def evaluate_in_loop(parts):
    """Evaluates the parts in the event loop, and awaits those that contain `await`. A coroutine that is the value of any other
    part is not awaited, because the code itself did not await it."""
    value = None
    for code in parts:
        value = eval(code, module.__dict__)
        if awaits_at_top(code):
            value = await value
    return value


def evaluate(parts):
    """Returns the value of the last part. If one part contains `await`, all parts run in the event loop, because the others
    may create the tasks for it."""
    if any(map(awaits_at_top, parts)):
        return wait_for(evaluate_in_loop(parts))
    for code in parts:
        value = eval(code, module.__dict__)
    return value


def run(code):
    """Runs code. Returns the formats in which its last expression can be displayed; none if it has no such expression."""
    importlib.invalidate_caches()
    name = remember_source(code)
    tree = compile(code, name, "exec", ast.PyCF_ONLY_AST | awaits, dont_inherit=True)
    ends_with_value = bool(tree.body) and isinstance(tree.body[-1], ast.Expr)
    last = ast.Expression(tree.body.pop().value) if ends_with_value else None
    first = compile(tree, name, "exec", awaits, dont_inherit=True)
    if last is None:
        evaluate([first])
        return {}
    flags = awaits | (first.co_flags & futures)
    return display_of(evaluate([first, compile(last, name, "eval", flags, dont_inherit=True)]))


DISPLAYS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_latex_": "text/latex",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_json_": "application/json",
}


def displayed(value, method):
    """Returns the result of a display method as text. Ignores its errors: they are no failure of the run."""
    try:
        given = getattr(value, method)()
        given = given[0] if isinstance(given, tuple) else given
        if isinstance(given, bytes):
            return base64.b64encode(given).decode()
        return given if given is None or isinstance(given, str) else json.dumps(given)
    except Exception:
        return None


def display_of(value):
    """Returns the formats in which notebooks show a value, up to the size limit, and its plain text."""
    if isinstance(value, type):
        return {}
    formats = {}
    for method, kind in DISPLAYS.items():
        text = displayed(value, method) if hasattr(type(value), method) else None
        if text is not None and sum(map(len, formats.values())) + len(text) <= LONGEST_DISPLAY:
            formats[kind] = text
    if formats:
        formats["text/plain"] = shortened(displayed(value, "__repr__") or "")
    return formats


NOTEBOOK_LINE = (
    "Lines with %, ! or ? are for IPython, which this is not. Run a command with subprocess.run([...]); "
    "install a package with subprocess.run([sys.executable, '-m', 'pip', 'install', NAME])."
)


# %magic, !command, names = !command, ?name, name?
NOTEBOOK_SYNTAX = re.compile(r"\s*(?:[%!?]|[\w\s,]+=\s*[%!]|[\w.]+\?\??\s*$)")


def is_for_notebooks(error, code):
    """Whether the line that Python refused is a command of IPython."""
    lines = code.splitlines()
    line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
    return error.filename == (cells and cells[-1]) and NOTEBOOK_SYNTAX.match(line) is not None


def user_frames(error):
    """Returns the traceback from the first frame of the user's code on. Leaves out earlier frames, of this file and of asyncio."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == own_name:
        trace = trace.tb_next
    first = trace
    while first is not None and not first.tb_frame.f_code.co_filename.startswith("<cell "):
        first = first.tb_next
    trace = first or trace
    return "".join(traceback.format_exception(type(error), error, trace))


def shortened(text):
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… ({len(text)} characters)"


def describe(error):
    try:
        told = {"name": type(error).__name__, "value": str(error), "traceback": user_frames(error)}
    except Exception:
        told = {"name": type(error).__name__, "value": "", "traceback": ""}
    return {key: shortened(text) for key, text in told.items()}


def read_requests():
    for line in requests:
        try:
            request = json.loads(line)
            if "ask" in request:
                with telling:
                    tell("free", asked=request["ask"])
                continue
            yield request["id"], request["code"], request["envs"], request["deadline"]
        except (ValueError, TypeError, KeyError):
            continue


def watch_over(deadline):
    """Ends this process if code still runs LATE_SECONDS after its deadline, because the gate that should interrupt it may have
    ended. The watch is a thread in C, so even code that blocks all Python threads cannot stop it."""
    if deadline is None:
        return
    left = max(deadline / 1000 + LATE_SECONDS - time.time(), 0.1)
    if left < LONGEST_WATCH_SECONDS:
        faulthandler.dump_traceback_later(left, exit=True, file=nowhere)


def serve(id, code, envs, deadline):
    global running
    failure = None
    formats = {}
    watch_over(deadline)
    before = {name: os.environ.get(name) for name in envs}
    try:
        try:
            with telling:
                running = id
                tell("start", deadline=deadline)
            os.environ.update(envs)
            formats = run(code)
        except SystemExit as leaving:
            # SystemExit is handled as Python does at its end: a number is an exit code, which a run does not have, and any
            # other value is printed.
            if not isinstance(leaving.code, (int, type(None))):
                print(leaving.code, file=sys.stderr)
            if sys.stdin.closed:
                open_input()
        except SyntaxError as error:
            if is_for_notebooks(error, code):
                error.msg = NOTEBOOK_LINE
            failure = error
        except BaseException as error:
            failure = error
        # The run is over, so ignore an interrupt from here on.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt as error:
        # The interrupt came between the end of the code and the line above.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        failure = failure or error
    if os.getpid() != own_pid:
        # The code has forked, and this process is the child, which has reached the end of the code.
        flush()
        os._exit(0)
    faulthandler.cancel_dump_traceback_later()
    pass_on_everything()
    told = failure and describe(failure)
    with telling:
        if told:
            tell("error", **told)
        elif formats:
            tell("display", formats=formats)
        tell("done")
        running = None
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    signal.signal(signal.SIGINT, on_interrupt)


for request in read_requests():
    serve(*request)
