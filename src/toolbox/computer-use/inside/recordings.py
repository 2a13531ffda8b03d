# Recordings of the display. Each is a video file below the user's home. A JSON file next to it says when the recording began,
# and which process makes it.
import re, uuid

DIRECTORY = os.path.expanduser("~/.daytona/recordings")
MOST_RUNNING = 2
MOST_RECORDINGS = 200
MOST_SECONDS = 3600
MOST_BYTES = 1024 ** 3
RECORD_BYTES = 4096


def moment(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%03dZ" % (seconds % 1 * 1000)


def record_path(id):
    # The id is part of a path.
    if not re.fullmatch(r"[0-9a-f]{32}", id):
        raise Refusal("unknown", "There is no such recording.")
    return os.path.join(DIRECTORY, id + ".json")


def read(id):
    try:
        with open(record_path(id)) as file:
            record = json.loads(file.read(RECORD_BYTES))
        # Check each field, because the sandbox's user may have written the record.
        name, pid, began = record["fileName"], int(record["pid"]), float(record["began"])
        is_sound = re.fullmatch(r"[A-Za-z0-9-]{1,64}_%s\.mp4" % id, name) and pid > 1 and 0 <= began <= 2 ** 40
        if record["id"] != id or not is_sound:
            raise ValueError
        return {"id": id, "fileName": name, "pid": pid, "began": began}, os.path.join(DIRECTORY, name)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        raise Refusal("unknown", "There is no such recording.")


def write(record):
    path = record_path(record["id"])
    with open(path + ".new", "w") as file:
        json.dump(record, file)
    os.rename(path + ".new", path)


def runs(record, video):
    """Whether the ffmpeg of a recording runs. Checks more than the pid: after a restart of the sandbox, another process may
    have this pid."""
    try:
        with open("/proc/%d/cmdline" % record["pid"], "rb") as file:
            return os.fsencode(video) in file.read().split(b"\0")
    except OSError:
        return False


def view(record, video):
    known = {"id": record["id"], "fileName": record["fileName"], "filePath": video, "startTime": moment(record["began"])}
    try:
        info = os.stat(video)
    except OSError:
        return dict(known, status="failed")
    known["sizeBytes"] = info.st_size
    if runs(record, video):
        return dict(known, status="recording", durationSeconds=max(0, time.time() - record["began"]))
    ended = max(info.st_mtime, record["began"])
    status = "completed" if info.st_size > 0 else "failed"
    return dict(known, status=status, endTime=moment(ended), durationSeconds=ended - record["began"])


def all_recordings():
    try:
        names = sorted(name for name in os.listdir(DIRECTORY) if name.endswith(".json"))
    except OSError:
        return []
    found = []
    for name in names[: MOST_RECORDINGS * 2]:
        try:
            found.append(read(name[: -len(".json")]))
        except Refusal:
            continue
    return found


@call
def start_recording(label):
    check_display()
    encoder = program("ffmpeg")
    known = all_recordings()
    if len(known) >= MOST_RECORDINGS:
        raise Refusal("many", "There are %d recordings: delete some first." % len(known))
    if sum(runs(*each) for each in known) >= MOST_RUNNING:
        raise Refusal("many", "%d recordings are running: stop one first." % MOST_RUNNING)
    os.makedirs(DIRECTORY, exist_ok=True)
    id = uuid.uuid4().hex
    name = "%s_%s.mp4" % (re.sub(r"[^A-Za-z0-9-]+", "-", label or "recording")[:64], id)
    video = os.path.join(DIRECTORY, name)
    argv = [
        *(encoder, "-nostdin", "-hide_banner", "-loglevel", "error", "-y"),
        *("-f", "x11grab", "-framerate", "10", "-draw_mouse", "1", "-i", DISPLAY),
        # The codec needs an even width and height. A file in fragments can be played even if its end was never written.
        *("-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-codec:v", "libx264", "-preset", "ultrafast", "-crf", "28"),
        *("-pix_fmt", "yuv420p", "-g", "20", "-movflags", "+frag_keyframe+empty_moov+default_base_moof"),
        *("-t", str(MOST_SECONDS), "-fs", str(MOST_BYTES), video),
    ]
    with open(os.path.join(DIRECTORY, id + ".errors"), "w+b") as errors:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        until = time.monotonic() + 10
        while process.poll() is None and time.monotonic() < until and not has_bytes(video):
            time.sleep(0.05)
        os.unlink(errors.name)
        if not has_bytes(video):
            process.kill()
            errors.seek(0)
            raise Refusal("failed", "ffmpeg could not record: %s" % last_words(errors.read(65536)))
    record = {"id": id, "fileName": name, "began": time.time(), "pid": process.pid}
    write(record)
    return view(record, video)


def has_bytes(path):
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def end(record, video):
    for number, seconds in ((signal.SIGINT, 10), (signal.SIGKILL, 2)):
        if not runs(record, video):
            return
        os.kill(record["pid"], number)
        until = time.monotonic() + seconds
        while runs(record, video) and time.monotonic() < until:
            time.sleep(0.05)


@call
def stop_recording(id):
    record, video = read(id)
    if not runs(record, video):
        raise Refusal("stopped", "This recording has ended already.")
    end(record, video)
    return view(record, video)


@call
def list_recordings():
    return sorted((view(*each) for each in all_recordings()), key=lambda each: each["startTime"])


@call
def get_recording(id):
    return view(*read(id))


@call
def delete_recording(id):
    record, video = read(id)
    end(record, video)
    for path in (video, record_path(id)):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
