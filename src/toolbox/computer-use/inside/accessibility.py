# The accessibility tree (AT-SPI) of the programs on the display, asked for over D-Bus. Each program describes its own nodes,
# so a tree may be endless, in a circle, slow or wrong. Therefore nodes, depth, texts and time are limited.
import re

try:
    from gi.repository import Gio, GLib
except ImportError:
    Gio = None

MOST_NODES = 2000
MOST_CHILDREN = 500
MOST_DEPTH = 64
TEXT_CHARACTERS = 1000
MOST_ACTIONS = 20
CALL_MS = 2000
LOOK_SECONDS = 8
ROOT = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
ACCESSIBLE = "org.a11y.atspi.Accessible"
PROPERTIES = "org.freedesktop.DBus.Properties"

# Names of the states of a node, in the order of AtspiStateType.
STATES = (
    "invalid active armed busy checked collapsed defunct editable enabled expandable expanded focusable focused has-tooltip "
    "horizontal iconified modal multi-line multiselectable opaque pressed resizable selectable selected sensitive showing "
    "single-line stale transient vertical visible manages-descendants indeterminate required truncated animated "
    "invalid-entry supports-autocompletion selectable-text is-default visited checkable has-popup read-only"
).split()


class Bus:
    def __init__(self):
        if Gio is None:
            raise Refusal("missing", "python3-gi")
        check_display()
        self.until = time.monotonic() + LOOK_SECONDS
        try:
            session = self.connect(BUS)
            address = session.call_sync(
                *("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress", None, None),
                *(Gio.DBusCallFlags.NONE, CALL_MS, None),
            ).unpack()[0]
            self.connection = self.connect(address)
        except GLib.Error:
            program("dbus-daemon")
            directories = ("/usr/libexec/", "/usr/lib/at-spi2-core/")
            program("at-spi-bus-launcher", *(each + "at-spi-bus-launcher" for each in directories))
            raise Refusal("stopped", "Accessibility is not started: call start first.")

    def connect(self, address):
        flags = Gio.DBusConnectionFlags
        kind = flags.AUTHENTICATION_CLIENT | flags.MESSAGE_BUS_CONNECTION
        return Gio.DBusConnection.new_for_address_sync(address, kind, None, None)

    def late(self):
        return time.monotonic() > self.until

    def call(self, node, interface, method, *given, signature=None):
        name, path = node
        parameters = GLib.Variant(signature, given) if signature else None
        return self.connection.call_sync(
            *(name, path, interface, method, parameters, None),
            *(Gio.DBusCallFlags.NO_AUTO_START, CALL_MS, None),
        ).unpack()

    def ask(self, default, *call, **more):
        """Like `call`, but returns the default if the node has no answer or is gone."""
        try:
            return self.call(*call, **more)[0]
        except (GLib.Error, IndexError, TypeError):
            return default

    def property(self, node, name, default):
        value = self.ask(default, node, PROPERTIES, "Get", ACCESSIBLE, name, signature="(ss)")
        return value if isinstance(value, type(default)) else default

    def children(self, node):
        found = self.ask([], node, ACCESSIBLE, "GetChildren")
        if not isinstance(found, list):
            return []
        return [each for each in found if isinstance(each, tuple) and len(each) == 2 and each[1] != "/org/a11y/atspi/null"]

    def pid(self, node):
        return self.ask(
            None,
            ("org.freedesktop.DBus", "/org/freedesktop/DBus"),
            *("org.freedesktop.DBus", "GetConnectionUnixProcessID", node[0]),
            signature="(s)",
        )

    def states(self, node):
        words = self.ask([], node, ACCESSIBLE, "GetState")
        are_bits = isinstance(words, list) and all(isinstance(word, int) and 0 <= word < 2 ** 32 for word in words[:2])
        bits = sum(word << (32 * at) for at, word in enumerate(words[:2])) if are_bits else 0
        return [name for at, name in enumerate(STATES) if bits >> at & 1]

    def actions(self, node):
        listed = self.ask([], node, "org.a11y.atspi.Action", "GetActions")
        if not isinstance(listed, list):
            return []
        return [str(each[0])[:TEXT_CHARACTERS] for each in listed[:MOST_ACTIONS] if isinstance(each, tuple) and each]

    def interfaces(self, node):
        found = self.ask([], node, ACCESSIBLE, "GetInterfaces")
        return found if isinstance(found, list) else []

    def view(self, node):
        """Describes a node without its children."""
        interfaces = self.interfaces(node)
        known = {
            "id": "%s:%s" % node,
            "name": self.property(node, "Name", "")[:TEXT_CHARACTERS],
            "description": self.property(node, "Description", "")[:TEXT_CHARACTERS],
            "role": str(self.ask("", node, ACCESSIBLE, "GetRoleName"))[:TEXT_CHARACTERS],
            "states": self.states(node),
            "actions": self.actions(node) if "org.a11y.atspi.Action" in interfaces else [],
        }
        if "org.a11y.atspi.Component" in interfaces:
            place = self.ask(None, node, "org.a11y.atspi.Component", "GetExtents", 0, signature="(u)")
            if isinstance(place, tuple) and len(place) == 4 and all(isinstance(each, int) for each in place):
                known["bounds"] = dict(zip(("x", "y", "width", "height"), place))
        return known

    def roots(self, scope, pid):
        """Returns the nodes at which a search begins."""
        if scope == "all":
            return [ROOT]
        programs = self.children(ROOT)[:MOST_CHILDREN]
        if scope == "pid":
            found = [each for each in programs if self.pid(each) == pid]
            if not found:
                raise Refusal("unknown", "No program with this pid is accessible.")
            return found[:1]
        for each in programs:
            if any("active" in self.states(window) for window in self.children(each)[:MOST_CHILDREN]):
                return [each]
        return []


class Walk:
    """Visits each node at most once, parents before children."""

    def __init__(self, bus):
        self.bus, self.seen, self.truncated = bus, set(), False

    def enter(self, node):
        if node in self.seen:
            return False
        if len(self.seen) >= MOST_NODES or self.bus.late():
            self.truncated = True
            return False
        self.seen.add(node)
        return True

    def children(self, node):
        found = self.bus.children(node)
        self.truncated = self.truncated or len(found) > MOST_CHILDREN
        return found[:MOST_CHILDREN]

    def rows(self, root, depth):
        """Returns the root and the nodes below it, each with the index of its parent, because nested JSON could be too deep."""
        found = []
        waiting = [(root, None, depth)]
        while waiting:
            node, parent, left = waiting.pop()
            if not self.enter(node):
                continue
            found.append(dict(self.bus.view(node), parent=parent))
            children = self.children(node)
            if left > 0:
                waiting.extend((each, len(found) - 1, left - 1) for each in reversed(children))
            elif children:
                self.truncated = True
        return found


@call
def tree(scope, pid, depth):
    bus = Bus()
    walk = Walk(bus)
    wanted = MOST_DEPTH if depth < 0 else min(depth, MOST_DEPTH)
    rows = [row for root in bus.roots(scope, pid) for row in walk.rows(root, wanted)]
    return {"rows": rows, "truncated": walk.truncated}


def matcher(name, how):
    if name is None:
        return lambda _: True
    if how == "regex":
        try:
            return re.compile(name).search
        except re.error as error:
            raise Refusal("bad", "name is not a regular expression: %s." % error)
    return (lambda other: other == name) if how == "exact" else (lambda other: name.lower() in other.lower())


def plain_role(role):
    """Returns `button` for `push button`, the name of that role in older versions of AT-SPI."""
    return re.sub("^push ", "", role.lower())


@call
def find(scope, pid, role, name, how, states, limit):
    fits = matcher(name, how)
    bus = Bus()
    walk = Walk(bus)
    found = []
    waiting = [(each, 0) for each in reversed(bus.roots(scope, pid))]
    while waiting:
        node, depth = waiting.pop()
        if not walk.enter(node):
            continue
        known = bus.view(node)
        if (role is None or plain_role(known["role"]) == plain_role(role)) and fits(known["name"]):
            if set(states) <= set(known["states"]):
                if len(found) == limit:
                    walk.truncated = True
                    break
                found.append(known)
        if depth < MOST_DEPTH:
            waiting.extend((each, depth + 1) for each in reversed(walk.children(node)))
    return {"matches": found, "truncated": walk.truncated}


def node_of(id):
    name, _, path = id.rpartition(":")
    if not Gio.dbus_is_name(name) or not GLib.Variant.is_object_path(path):
        raise Refusal("unknown", "There is no such node.")
    return name, path


def reached(bus, id):
    node = node_of(id)
    try:
        bus.call(node, ACCESSIBLE, "GetRoleName")
    except GLib.Error:
        raise Refusal("unknown", "There is no such node.")
    return node


def changed(bus, *call, **more):
    try:
        return bus.call(*call, **more)
    except GLib.Error as error:
        raise Refusal("failed", "The node refused: %s" % error.message)


@call
def focus(id):
    bus = Bus()
    if changed(bus, reached(bus, id), "org.a11y.atspi.Component", "GrabFocus") != (True,):
        raise Refusal("failed", "The node did not take the focus.")


@call
def invoke(id, action):
    bus = Bus()
    node = reached(bus, id)
    names = bus.actions(node)
    if not names:
        raise Refusal("failed", "The node has no actions.")
    if action and action not in names:
        raise Refusal("failed", "The node has no such action. It has: %s." % ", ".join(names))
    at = names.index(action) if action else 0
    if changed(bus, node, "org.a11y.atspi.Action", "DoAction", at, signature="(i)") != (True,):
        raise Refusal("failed", "The node did not do that.")


@call
def set_value(id, value):
    bus = Bus()
    node = reached(bus, id)
    interfaces = bus.interfaces(node)
    if "org.a11y.atspi.EditableText" in interfaces:
        done = changed(bus, node, "org.a11y.atspi.EditableText", "SetTextContents", value, signature="(s)")
        if done != (True,):
            raise Refusal("failed", "The node did not take the text.")
    elif "org.a11y.atspi.Value" in interfaces:
        try:
            number = GLib.Variant("d", float(value))
        except ValueError:
            raise Refusal("bad", "The value of this node is a number.")
        changed(
            *(bus, node, PROPERTIES, "Set", "org.a11y.atspi.Value", "CurrentValue", number),
            signature="(ssv)",
        )
    else:
        raise Refusal("failed", "The value of this node cannot be set.")
