# Mouse, keyboard, screenshots and windows of the display.
import base64, ctypes, itertools

# Maximum numbers of windows, and of characters of a title, because a program may open windows without limit.
MOST_WINDOWS = 500
TITLE_CHARACTERS = 1000


def xdotool(*words, **more):
    return run("xdotool", *[str(word) for word in words], **more)


def numbers(data, count):
    found = [int(word) for word in data.split()[:count]]
    if len(found) != count:
        raise Refusal("failed", "xdotool did not say numbers.")
    return found


def size():
    try:
        return numbers(xdotool("getdisplaygeometry"), 2)
    except ValueError:
        raise Refusal("failed", "xdotool did not say the size of the display.")


@call
def position():
    values = dict(part.split(":", 1) for part in xdotool("getmouselocation").decode().split() if ":" in part)
    try:
        return {"x": int(values["x"]), "y": int(values["y"])}
    except (KeyError, ValueError):
        raise Refusal("failed", "xdotool did not say where the mouse is.")


def check_inside(*points):
    width, height = size()
    for x, y in points:
        if x >= width or y >= height:
            raise Refusal("bad", "The point %d,%d is outside of the display, which is %dx%d." % (x, y, width, height))


@call
def move(x, y):
    check_inside((x, y))
    xdotool("mousemove", x, y)
    return position()


@call
def click(x, y, button, times):
    check_inside((x, y))
    xdotool("mousemove", x, y, "click", "--repeat", times, "--delay", 60, button)
    return position()


@call
def drag(start, end, button):
    check_inside(start, end)
    # Programs recognize a drag only if the mouse moves while the button is down.
    (x, y), (to_x, to_y) = start, end
    steps = [(x + (to_x - x) * at // 4, y + (to_y - y) * at // 4) for at in (1, 2, 3, 4)]
    moves = [word for step in steps for word in ("mousemove", *step, "sleep", "0.03")]
    try:
        xdotool("mousemove", x, y, "mousedown", button, "sleep", "0.03", *moves)
    finally:
        xdotool("mouseup", button)
    return position()


@call
def scroll(x, y, button, times):
    check_inside((x, y))
    xdotool("mousemove", x, y, "click", "--repeat", times, "--delay", 10, button)
    return True


def is_plain(character):
    """Returns whether every keyboard has a key for the character."""
    return character in "\n\t" or " " <= character <= "~"


@call
def type_text(text, delay, seconds):
    until = time.monotonic() + seconds
    for plain, run_of in itertools.groupby(text, is_plain):
        characters = "".join(run_of)
        if plain:
            words = ("type", "--clearmodifiers", "--delay", delay, "--file", "-")
            xdotool(*words, text=characters.encode(), seconds=until - time.monotonic())
            continue
        for codes in Display().map_keys(characters):
            xdotool("key", "--clearmodifiers", "--delay", delay, *codes, seconds=until - time.monotonic())


@call
def press(keys):
    xdotool("key", "--clearmodifiers", keys)


@call
def display():
    width, height = size()
    return [{"id": 0, "x": 0, "y": 0, "width": width, "height": height, "isActive": True}]


ENCODERS = {
    "png": lambda quality: ["-codec:v", "png"],
    "jpeg": lambda quality: ["-codec:v", "mjpeg", "-q:v", str(31 - quality * 29 // 100), "-pix_fmt", "yuvj444p"],
    "webp": lambda quality: ["-codec:v", "libwebp", "-quality", str(quality)],
}


@call
def screenshot(cursor, region, format, quality, scale):
    width, height = size()
    x, y, wide, high = region or (0, 0, width, height)
    if x + wide > width or y + high > height:
        raise Refusal("bad", "The region is outside of the display, which is %dx%d." % (width, height))
    filters = []
    if scale < 1:
        filters = ["-vf", "scale=%d:%d" % (max(1, round(wide * scale)), max(1, round(high * scale)))]
    image = run(
        *("ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error"),
        *("-f", "x11grab", "-draw_mouse", "1" if cursor else "0", "-framerate", "25"),
        *("-video_size", "%dx%d" % (wide, high), "-i", "%s+%d,%d" % (DISPLAY, x, y)),
        *("-frames:v", "1", *filters, *ENCODERS[format](quality), "-f", "image2pipe", "-"),
    )
    # In JSON, base64 makes the image a third longer.
    if len(image) > 11 * 1024 * 1024:
        raise Refusal("failed", "The picture is too large: ask for a region, or a compressed one.")
    return {
        "screenshot": base64.b64encode(image).decode(),
        "cursorPosition": position(),
        "sizeBytes": len(image),
    }


def keysym_of(character):
    """Returns the keysym: the own number of a Latin-1 character, and a number with a prefix for all others."""
    number = ord(character)
    return number if 0xA0 <= number <= 0xFF else 0x01000000 | number


class Display:
    """The functions of Xlib that computer use needs. Errors about a window that has just closed are ignored."""

    def __init__(self):
        check_display()
        try:
            self.x = ctypes.CDLL("libX11.so.6")
        except OSError:
            raise Refusal("missing", "libX11")
        self.x.XOpenDisplay.restype = ctypes.c_void_p
        for name in ("XInternAtom", "XDefaultRootWindow"):
            getattr(self.x, name).restype = ctypes.c_ulong
        self.x.XGetKeyboardMapping.restype = ctypes.POINTER(ctypes.c_ulong)
        self.ignore = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: 0)
        self.x.XSetErrorHandler(self.ignore)
        opened = self.x.XOpenDisplay(DISPLAY.encode())
        if not opened:
            raise Refusal("stopped", "The desktop is not started: call start first.")
        self.display = ctypes.c_void_p(opened)
        self.root = ctypes.c_ulong(self.x.XDefaultRootWindow(self.display))

    def property(self, window, name, width, most):
        """Returns the items of a window's property: numbers if `width` is 32, else bytes."""
        atom = ctypes.c_ulong(self.x.XInternAtom(self.display, name.encode(), 0))
        kind, count, rest = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_ulong()
        bits, data = ctypes.c_int(), ctypes.POINTER(ctypes.c_ubyte)()
        failed = self.x.XGetWindowProperty(
            *(self.display, ctypes.c_ulong(window), atom, ctypes.c_long(0), ctypes.c_long(most), 0, ctypes.c_ulong(0)),
            *(ctypes.byref(kind), ctypes.byref(bits), ctypes.byref(count), ctypes.byref(rest), ctypes.byref(data)),
        )
        if failed or not data:
            return []
        try:
            if bits.value != width:
                return []
            if width == 32:
                return list(ctypes.cast(data, ctypes.POINTER(ctypes.c_ulong))[: count.value])
            return bytes(data[: count.value])
        finally:
            self.x.XFree(data)

    def place(self, window):
        """Returns the position of a window on the screen and its size; None if the window is gone."""
        root, child = ctypes.c_ulong(), ctypes.c_ulong()
        x, y = ctypes.c_int(), ctypes.c_int()
        width, height, border, depth = (ctypes.c_uint() for _ in range(4))
        of = ctypes.c_ulong(window)
        sizes = [ctypes.byref(each) for each in (root, x, y, width, height, border, depth)]
        if not self.x.XGetGeometry(self.display, of, *sizes):
            return None
        at = [ctypes.byref(each) for each in (x, y, child)]
        if not self.x.XTranslateCoordinates(self.display, of, self.root, 0, 0, *at):
            return None
        return {"x": x.value, "y": y.value, "width": width.value, "height": height.value}

    def keyboard(self):
        """Returns the keysyms of each keycode."""
        least, most, each = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self.x.XDisplayKeycodes(self.display, ctypes.byref(least), ctypes.byref(most))
        count = most.value - least.value + 1
        found = self.x.XGetKeyboardMapping(self.display, ctypes.c_ubyte(least.value), count, ctypes.byref(each))
        try:
            width = each.value
            return width, {least.value + at: list(found[at * width : (at + 1) * width]) for at in range(count)}
        finally:
            self.x.XFree(found)

    def map_keys(self, characters):
        """
        Gives keycodes to characters that no key has, and yields the keycodes to press. The mapping stays: a program looks a key
        up after it was pressed, so a mapping for one press is often too short.
        """
        waiting = list(characters)
        while waiting:
            width, keyboard = self.keyboard()
            known = {keys[0]: code for code, keys in keyboard.items() if keys[0] and keys[0] == keys[-1]}
            free = [code for code, keys in keyboard.items() if not any(keys)]
            ours = [code for keysym, code in known.items() if keysym >> 24 == 1 or 0xA0 <= keysym <= 0xFF]
            codes = []
            while waiting:
                keysym = keysym_of(waiting[0])
                if keysym not in known:
                    if not free:
                        break
                    known[keysym] = free.pop()
                    keys = (ctypes.c_ulong * width)(*[keysym] * width)
                    self.x.XChangeKeyboardMapping(self.display, known[keysym], width, keys, 1)
                codes.append(known[keysym])
                waiting.pop(0)
            self.x.XSync(self.display, 0)
            if codes:
                yield codes
            if not waiting:
                return
            if not ours and not codes:
                raise Refusal("failed", "The keyboard has no free keys for other characters.")
            # Waits until programs have looked up the last keys, because the next lines clear these keys.
            time.sleep(0.5)
            for code in {*ours, *codes}:
                self.x.XChangeKeyboardMapping(self.display, code, width, (ctypes.c_ulong * width)(), 1)
            self.x.XSync(self.display, 0)

    def title(self, window):
        for name in ("_NET_WM_NAME", "WM_NAME"):
            data = self.property(window, name, 8, TITLE_CHARACTERS)
            if data:
                return bytes(data).decode("utf-8", "replace")[:TITLE_CHARACTERS]
        return ""


@call
def windows():
    screen = Display()
    listed = screen.property(screen.root.value, "_NET_CLIENT_LIST", 32, MOST_WINDOWS)
    active = screen.property(screen.root.value, "_NET_ACTIVE_WINDOW", 32, 1)
    found = []
    for window in listed:
        place = screen.place(window)
        if place is not None:
            found.append(dict(place, id=window, title=screen.title(window), isActive=window in active))
    return found
