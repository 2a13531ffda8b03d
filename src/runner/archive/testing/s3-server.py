# A real S3 server for tests: OpenStack Swift from Debian's python3-swift with its S3 interface, all four servers in one process
# on 127.0.0.1. It checks signatures (version 4) and the hash of each body. It prints its port, and ends when its standard input
# ends.
#
#   python3 s3-server.py DIRECTORY ACCESS_KEY SECRET
import os
import sys

import eventlet

eventlet.patcher.monkey_patch(thread=False)

from eventlet import wsgi  # noqa: E402
from swift.common import utils  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402

directory, access_key, secret = sys.argv[1:]
devices = os.path.join(directory, "devices")
account, user = access_key.split(":")

# The configuration that Swift otherwise reads from /etc/swift.
utils.SWIFT_CONF_FILE = os.path.join(directory, "swift.conf")
with open(utils.SWIFT_CONF_FILE, "w") as conf:
    conf.write("[swift-hash]\nswift_hash_path_suffix = alcove\n")
utils.HASH_PATH_SUFFIX = b"alcove"

from swift.common.storage_policy import reload_storage_policies  # noqa: E402
from swift.common.wsgi import loadapp  # noqa: E402

reload_storage_policies()

STORAGE = """[DEFAULT]
devices = {devices}
mount_check = false
swift_dir = {directory}
fallocate_reserve = 0
disable_fallocate = true
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""

PROXY = """[DEFAULT]
swift_dir = {directory}
[pipeline:main]
pipeline = s3api tempauth proxy-server
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_{account}_{user} = {secret} .admin
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
"""


class Quiet:
    def debug(self, *args):
        pass

    info = debug


class Forgetful:
    """In place of the memcached that Swift asks for: a cache that never has anything."""

    def get(self, *args, **more):
        return None

    set = delete = incr = get


def with_cache(app):
    cache = Forgetful()

    def call(env, start_response):
        env["swift.cache"] = cache
        return app(env, start_response)

    return call


def serve(name, listener, text):
    path = os.path.join(directory, name + "-server.conf")
    with open(path, "w") as conf:
        conf.write(text)
    eventlet.spawn(wsgi.server, listener, with_cache(loadapp(path)), Quiet(), max_size=64, keepalive=False)


os.makedirs(os.path.join(devices, "disk"))
for kind in ("account", "container", "object"):
    listener = eventlet.listen(("127.0.0.1", 0))
    ring = RingBuilder(part_power=4, replicas=1, min_part_hours=0)
    ring.add_dev(
        {"region": 1, "zone": 1, "weight": 1, "ip": "127.0.0.1", "port": listener.getsockname()[1], "device": "disk"}
    )
    ring.rebalance()
    ring.get_ring().save(os.path.join(directory, kind + ".ring.gz"))
    serve(kind, listener, STORAGE.format(devices=devices, directory=directory, kind=kind))

front = eventlet.listen(("127.0.0.1", 0))
serve("proxy", front, PROXY.format(directory=directory, account=account, user=user, secret=secret))
print(front.getsockname()[1], flush=True)
# Wait until the parent process closes standard input, and then end.
eventlet.tpool.execute(sys.stdin.read)
