# The programs of the desktop. A supervisor process starts them, restarts those that end, and stores the last part of their
# output. It is the only long-lived process of computer use. It ends with the call `stop` or with the sandbox, and continues
# if the gate ends.
import ctypes, fcntl, re, select

READY_SECONDS = 20
END_SECONDS = 5
KEPT_BYTES = 128 * 1024
MOST_RESTARTS = 5
RESTARTS_WITHIN = 60
SOCKET = STATE + "/supervisor"
VNC_PORT = 5900
WEB_PORT = 6080


def screen_size():
    """The size of the display from VNC_RESOLUTION, such as 1280x800."""
    wanted = os.environ.get("VNC_RESOLUTION", "1024x768")
    width, _, height = wanted.partition("x")
    if width.isdigit() and height.isdigit() and 64 <= int(width) <= 3840 and 64 <= int(height) <= 2160:
        return int(width), int(height)
    raise Refusal("bad", "VNC_RESOLUTION must be WIDTHxHEIGHT, from 64x64 to 3840x2160.")


def listens(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = open(table).readlines()[1:]
        except OSError:
            continue
        if any(row.split()[1].endswith(":%04X" % port) and row.split()[3] == "0A" for row in rows):
            return True
    return False


def clear_display():
    """Removes the lock of an X server that ended with an earlier start of the sandbox: its pid may be another process now."""
    if accepts(X_SOCKET):
        return
    for path in ("/tmp/.X0-lock", X_SOCKET):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def clear_bus():
    if os.path.exists(STATE + "/bus"):
        os.unlink(STATE + "/bus")


def one_desktop():
    """Limits Openbox to one virtual desktop. With its usual four, scrolling outside of all windows changes the desktop."""
    with open("/etc/xdg/openbox/rc.xml") as file:
        text = file.read(1024 * 1024)
    with open(STATE + "/openbox.xml", "w") as file:
        file.write(re.sub(r"(<desktops>.*?<number>)\d+", r"\g<1>1", text, count=1, flags=re.DOTALL))


def window_manager():
    argv = [program("openbox"), "--sm-disable"]
    own = os.path.expanduser("~/.config/openbox/rc.xml")
    if os.path.exists(own) or not os.path.exists("/etc/xdg/openbox/rc.xml"):
        return Program("openbox", argv)
    return Program("openbox", [*argv, "--config-file", STATE + "/openbox.xml"], before=one_desktop)


libc = ctypes.CDLL(None)


def die_with_supervisor():
    """Runs in a new process: the kernel sends it SIGTERM when the supervisor ends (PR_SET_PDEATHSIG)."""
    libc.prctl(1, signal.SIGTERM)


def always():
    return True


class Program:
    def __init__(self, name, argv, ready=always, before=always):
        self.name, self.argv, self.ready, self.before = name, argv, ready, before
        self.process = None
        self.output = {"logs": bytearray(), "errors": bytearray()}
        self.pipes = {}
        self.ends = []
        self.start_at = None

    def start(self):
        self.start_at = None
        self.before()
        self.process = subprocess.Popen(
            self.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            cwd=os.path.expanduser("~"),
            start_new_session=True,
            preexec_fn=die_with_supervisor,
        )
        for stream, kind in ((self.process.stdout, "logs"), (self.process.stderr, "errors")):
            os.set_blocking(stream.fileno(), False)
            self.pipes[stream.fileno()] = (stream, kind)

    def read(self, descriptor):
        stream, kind = self.pipes[descriptor]
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        kept = self.output[kind]
        kept += data
        del kept[:-KEPT_BYTES]
        if not data:
            del self.pipes[descriptor]
            stream.close()

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def send(self, number):
        if self.runs():
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                pass

    def note_end(self):
        """If the program has ended, plans a restart, up to MOST_RESTARTS times within RESTARTS_WITHIN seconds."""
        if self.process is None or self.runs():
            return
        self.process = None
        now = time.monotonic()
        self.ends = [at for at in self.ends if now - at < RESTARTS_WITHIN] + [now]
        if len(self.ends) <= MOST_RESTARTS:
            self.start_at = now + 1

    def status(self, priority):
        running = self.runs()
        known = {"running": running, "priority": priority, "autoRestart": True}
        return dict(known, pid=self.process.pid) if running else known


def programs():
    """The programs in the order of their start. Accessibility is optional, because a display is of use without it."""
    width, height = screen_size()
    screen = "%dx%dx24" % (width, height)
    vnc = [program("x11vnc"), "-display", DISPLAY, "-localhost", "-rfbport", str(VNC_PORT), "-forever", "-shared"]
    web = [program("websockify"), "--web=/usr/share/novnc", "127.0.0.1:%d" % WEB_PORT, "127.0.0.1:%d" % VNC_PORT]
    found = [
        Program(
            "xvfb",
            [program("Xvfb"), DISPLAY, "-screen", "0", screen, "-nolisten", "tcp", "-noreset"],
            lambda: accepts(X_SOCKET),
            clear_display,
        )
    ]
    try:
        bus = [program("dbus-daemon"), "--session", "--nofork", "--nopidfile", "--address=" + BUS]
        directories = ("/usr/libexec/", "/usr/lib/at-spi2-core/")
        access = program("at-spi-bus-launcher", *(each + "at-spi-bus-launcher" for each in directories))
        found.append(Program("dbus", bus, lambda: accepts(STATE + "/bus"), clear_bus))
        found.append(Program("at-spi", [access, "--launch-immediately"]))
    except Refusal:
        pass
    found.append(window_manager())
    found.append(Program("x11vnc", [*vnc, "-nopw", "-quiet"], lambda: listens(VNC_PORT)))
    found.append(Program("novnc", web, lambda: listens(WEB_PORT)))
    return found


class Supervisor:
    def __init__(self):
        self.all = {each.name: each for each in programs()}
        self.server = socket.socket(socket.AF_UNIX)
        self.wake, waker = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self):
        try:
            os.unlink(SOCKET)
        except FileNotFoundError:
            pass
        self.server.bind(SOCKET)
        self.server.listen(16)
        failure = self.start_all()
        while True:
            with self.next_request() as connection:
                connection.settimeout(5)
                try:
                    name, of = json.loads(connection.makefile("rb").readline(4096))
                    reply = failure or self.reply(name, of)
                    connection.sendall(json.dumps(reply).encode() + b"\n")
                except (OSError, ValueError):
                    continue
                if failure or name == "stop":
                    return

    def next_request(self):
        while not self.pump(None, self.server):
            pass
        return self.server.accept()[0]

    def pump(self, seconds, *more):
        """Reads output and restarts programs until an event or the timeout. Returns whether one of `more` can be read."""
        due = [each.start_at - time.monotonic() for each in self.all.values() if each.start_at is not None]
        waits = [max(0, wait) for wait in due + ([] if seconds is None else [seconds])]
        pipes = {fd: each for each in self.all.values() for fd in each.pipes}
        readable, _, _ = select.select([self.wake, *pipes, *more], [], [], min(waits) if waits else None)
        if self.wake in readable:
            os.read(self.wake, 4096)
        for descriptor in readable:
            if descriptor in pipes:
                pipes[descriptor].read(descriptor)
        for each in self.all.values():
            each.note_end()
            if each.start_at is not None and each.start_at <= time.monotonic():
                self.launch(each)
        return any(one in readable for one in more)

    def launch(self, each):
        each.start()
        # Programs find the accessibility bus by a property of the display. A new display lacks it, so start the bus again.
        if each.name == "xvfb" and "at-spi" in self.all:
            self.all["at-spi"].send(signal.SIGTERM)

    def wait(self, done, seconds):
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            self.pump(0.05)
        return done()

    def start_one(self, each):
        each.ends = []
        self.launch(each)
        # A program that has ended again already counts as not started, even if `ready` returns true.
        if self.wait(lambda: each.process is None or each.ready(), READY_SECONDS) and each.process is not None:
            return None
        words = last_words(bytes(each.output["errors"] or each.output["logs"]))
        return {"refusal": "failed", "message": "%s could not be started: %s" % (each.name, words)}

    def start_all(self):
        for each in self.all.values():
            failure = self.start_one(each)
            if failure:
                self.stop_all()
                return failure
        return None

    def stop_some(self, some):
        for number in (signal.SIGTERM, signal.SIGKILL):
            for each in some:
                each.start_at = None
                each.send(number)
            if self.wait(lambda: not any(each.runs() for each in some), END_SECONDS):
                break
        for each in some:
            each.process = each.start_at = None

    def stop_all(self):
        self.stop_some(list(reversed(self.all.values())))

    def reply(self, name, of):
        if of is not None and of not in self.all:
            known = ", ".join(self.all)
            return {"refusal": "unknown", "message": "There is no process of this name. There are: %s." % known}
        if name == "status":
            return {"result": {each.name: each.status(at) for at, each in enumerate(self.all.values(), 1)}}
        if name in ("logs", "errors"):
            return {"result": self.all[of].output[name].decode("utf-8", "replace")}
        if name == "restart":
            self.stop_some([self.all[of]])
            return self.start_one(self.all[of]) or {"result": None}
        if name == "stop":
            self.stop_all()
            return self.reply("status", None)
        raise ValueError(name)


@call
def supervise():
    os.makedirs(STATE, 0o700, exist_ok=True)
    lock = os.open(STATE + "/lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    Supervisor().serve()


def ask(name, of=None, seconds=60):
    """Sends a request to the supervisor. Returns None if no supervisor runs."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(seconds)
    try:
        connection.connect(SOCKET)
        connection.sendall(json.dumps([name, of]).encode() + b"\n")
        line = connection.makefile("rb").readline(1024 * 1024)
    except socket.timeout:
        raise Refusal("late", "The desktop does not answer.")
    except OSError:
        return None
    if not line:
        return None
    said = json.loads(line)
    if "refusal" in said:
        raise Refusal(said["refusal"], said["message"])
    return said


def asked(name, of):
    said = ask(name, of)
    if said is None:
        raise Refusal("stopped", "The desktop is not started: call start first.")
    return said["result"]


@call
def start():
    said = ask("status")
    if said is not None:
        return said["result"]
    for each in ("xdotool", "ffmpeg"):
        program(each)
    # Names a missing program, or a wrong resolution, before anything is started.
    programs()
    os.makedirs(STATE, 0o700, exist_ok=True)
    path = STATE + "/supervisor.py"
    with open(path, "w") as file:
        file.write(SOURCE + "\nsupervise()\n")
    command = [sys.executable, "-I", path]
    with open(STATE + "/failure", "wb") as failure:
        supervisor = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=failure, stderr=failure, cwd="/", start_new_session=True
        )
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        said = ask("status")
        if said is not None:
            return said["result"]
        # If another call has started a supervisor first, that supervisor answers, and the supervisor of this call has ended.
        if supervisor.poll() not in (None, 0):
            break
        time.sleep(0.05)
    with open(STATE + "/failure", "rb") as failure:
        raise Refusal("failed", "The desktop could not be started: %s" % last_words(failure.read()))


@call
def stop():
    said = ask("stop")
    return {} if said is None else said["result"]


@call
def status():
    said = ask("status")
    return {} if said is None else said["result"]


@call
def process_status(name):
    return asked("status", name)[name]["running"]


@call
def restart(name):
    return asked("restart", name)


@call
def logs(name):
    return asked("logs", name)


@call
def errors(name):
    return asked("errors", name)
