# Runs inside the sandbox, as its user. The gate sends this file and one more of this directory for each call (../ask.ts). A call
# is one function in `calls`; its result, or a refusal, is one line of JSON on standard output.
import json, os, shutil, signal, socket, subprocess, sys, time

DISPLAY = ":0"
X_SOCKET = "/tmp/.X11-unix/X0"
STATE = "/tmp/.computer-use-%d" % os.getuid()
BUS = "unix:path=" + STATE + "/bus"
ENVIRONMENT = dict(os.environ, DISPLAY=DISPLAY, DBUS_SESSION_BUS_ADDRESS=BUS, LC_ALL="C.UTF-8")
# Time limit of one program that a call runs. The gate ends the whole call a little later than this limit.
PROGRAM_SECONDS = 10

calls = {}


def call(function):
    calls[function.__name__] = function
    return function


class Refusal(Exception):
    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def program(name, *more):
    """Returns the path of a program, looked up in PATH and then at the given paths."""
    for found in (shutil.which(name), *more):
        if found and os.access(found, os.X_OK):
            return found
    raise Refusal("missing", name)


def accepts(address):
    probe = socket.socket(socket.AF_UNIX)
    probe.settimeout(2)
    try:
        probe.connect(address)
        return True
    except OSError:
        return False
    finally:
        probe.close()


def check_display():
    if not accepts(X_SOCKET):
        raise Refusal("stopped", "The desktop is not started: call start first.")


def run(*argv, text=None, seconds=PROGRAM_SECONDS):
    """Runs a program on the display and returns its output in bytes."""
    check_display()
    try:
        done = subprocess.run(
            [program(argv[0]), *argv[1:]],
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise Refusal("late", "%s did not end within %d seconds." % (argv[0], seconds))
    if done.returncode != 0:
        raise Refusal("failed", "%s failed: %s" % (argv[0], last_words(done.stderr)))
    return done.stdout


def last_words(data):
    return data[-600:].decode("utf-8", "replace").strip()


def answer(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main(name, given):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        answer({"result": calls[name](**given)})
    except Refusal as refusal:
        answer({"refusal": refusal.kind, "message": str(refusal)[:2000]})
