# A hostile program on the accessibility bus. Every node of its tree has as children the node itself, its parent and new
# nodes, so the tree never ends. The program also answers slowly, with texts that are too long.
import time

from gi.repository import Gio, GLib
import os

session = Gio.DBusConnection.new_for_address_sync(
    "unix:path=/tmp/.computer-use-%d/bus" % os.getuid(),
    Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION,
    None,
    None,
)
address = session.call_sync("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress", None, None, 0, 5000, None)
bus = Gio.DBusConnection.new_for_address_sync(
    address.unpack()[0],
    Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION,
    None,
    None,
)
name = bus.get_unique_name()
ROOT = "/org/a11y/atspi/accessible/root"
made = 0


def answer(_connection, message, incoming):
    global made
    if not incoming or message.get_message_type() != Gio.DBusMessageType.METHOD_CALL:
        return message
    member, path = message.get_member(), message.get_path()
    reply = Gio.DBusMessage.new_method_reply(message)
    if member == "GetChildren":
        time.sleep(0.02)
        made += 2
        nodes = [path, ROOT, "/n/%d" % made, "/n/%d" % (made + 1)]
        reply.set_body(GLib.Variant("(a(so))", ([(name, node) for node in nodes],)))
    elif member == "Get":
        reply.set_body(GLib.Variant("(v)", (GLib.Variant("s", "x" * 100_000),)))
    elif member == "GetRoleName":
        reply.set_body(GLib.Variant("(s)", ("frame",)))
    elif member == "GetState":
        reply.set_body(GLib.Variant("(au)", ([2, 0],)))
    else:
        # The answer has a number, although interfaces should be a list of texts.
        reply.set_body(GLib.Variant("(i)", (7,)))
    bus.send_message(reply, Gio.DBusSendMessageFlags.NONE)
    return None


bus.add_filter(answer)
bus.call_sync(
    "org.a11y.atspi.Registry",
    ROOT,
    "org.a11y.atspi.Socket",
    "Embed",
    GLib.Variant("((so))", ((name, ROOT),)),
    None,
    0,
    5000,
    None,
)
print("ready", flush=True)
GLib.MainLoop().run()
