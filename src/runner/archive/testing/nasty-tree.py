# For tests: makes a disk with everything that is hard to archive, or describes a disk.
#
#   python3 nasty-tree.py make DISK        makes DISK/upper and DISK/etc
#   python3 nasty-tree.py list DISK        prints a line for each file: its metadata and a hash of its content
import hashlib
import os
import random
import socket
import stat
import struct
import sys

verb, disk = sys.argv[1:]
BASE = 165536


def access_list():
    entries = [(1, 6, -1), (2, 7, BASE + 1000), (4, 4, -1), (0x10, 7, -1), (0x20, 4, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


def write(name, content=b""):
    with open(name, "wb") as file:
        file.write(content)


def make():
    os.makedirs(os.path.join(disk, "etc"))
    os.makedirs(os.path.join(disk, "upper"))
    write(os.path.join(disk, "etc", "hosts"), b"127.0.0.1 localhost\n")
    os.chdir(os.path.join(disk, "upper"))
    os.chown(".", BASE, BASE)
    os.setxattr(".", "trusted.overlay.opaque", b"y")

    write("big", random.Random(7).randbytes(9 << 20))
    write("text", b"hello\n" * 300_000)

    os.mknod("whiteout", stat.S_IFCHR, 0)
    os.setxattr("whiteout", "trusted.overlay.origin", bytes(range(60)))
    os.mkfifo("fifo", 0o640)
    os.symlink("/etc/passwd", "absolute")
    os.setxattr("absolute", "trusted.overlay.origin", b"x", follow_symlinks=False)
    os.symlink("../../../../../../etc", "outside")
    os.symlink("x" * 4000, "long-link")
    os.utime("absolute", ns=(0, 981173045123456789), follow_symlinks=False)

    write("one", b"hi\n")
    os.link("one", "two")
    os.mkdir("linked")
    os.link("one", "linked/three")
    os.chown("one", BASE + 1000, BASE + 33)
    os.chmod("one", 0o6755)
    values = {
        "user.plain": b"bar", "user.we=ird": b"=", "user.binary": b"\0\x01\n\xff= 12 x=y\n", "user.empty": b"",
        "user.%3D": b"p", b"user.\xff\nl": b"q", "user." + "k" * 250: b"long", "user.*": b"star",
    }  # fmt: skip
    for name, value in values.items():
        os.setxattr("one", name, value)
    os.utime("one", ns=(0, 981173045123456789))

    write("listed")
    os.setxattr("listed", "system.posix_acl_access", access_list())
    os.mkdir("sticky")
    os.setxattr("sticky", "system.posix_acl_default", access_list())
    os.chmod("sticky", 0o1777)
    write("capable", b"#!")
    os.chown("capable", BASE, BASE)
    os.setxattr("capable", "security.capability", struct.pack("<IIIIII", 0x03000001, 1 << 13, 0, 0, 0, BASE))

    with open("sparse", "wb") as file:
        file.truncate(5 << 30)
        file.seek(3_000_000_000)
        file.write(b"x")
    with open("hole", "wb") as file:
        file.truncate(1 << 20)

    for name in (b"bad\xff\xfename\n\x01", b"-rf", b"--checkpoint-action=exec=false", b"\\x", b"n" * 255, b".wh.x", b" ", b"*"):
        write(name)
    os.utime(b"-rf", ns=(0, 99999999999_123456789))
    os.utime("sticky", ns=(0, -1_500_000_001))
    socket.socket(socket.AF_UNIX).bind("socket")

    os.mkdir("deep")
    os.chdir("deep")
    for _ in range(15):
        os.mkdir("d" * 255)
        os.chdir("d" * 255)
    write("bottom")
    os.chdir(os.path.join(disk, "upper"))

    os.mkdir("closed")
    write("closed/inside", b"secret")
    os.chmod("closed/inside", 0)
    os.utime("closed", ns=(0, 1))
    os.chmod("closed", 0)


def walk(directory):
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        yield path
        if stat.S_ISDIR(os.lstat(path).st_mode):
            yield from walk(path)


def content_of(path, found):
    if stat.S_ISLNK(found.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(found.st_mode):
        return ""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        # The hole of a huge file is not read, because that would take too long. Only the data after it and its position are
        # printed.
        try:
            file.seek(os.lseek(file.fileno(), 0, os.SEEK_DATA))
        except OSError:
            return "only a hole"
        at = file.tell()
        while piece := file.read(1 << 20):
            digest.update(piece)
            if found.st_size > 1 << 32 and file.tell() > at + (1 << 24):
                break
    return f"{at} {digest.hexdigest()} {'sparse' if found.st_blocks * 512 < found.st_size // 2 else ''}"


def say():
    os.chdir(disk)
    first_names = {}
    for path in walk(b"."):
        found = os.lstat(path)
        names = os.listxattr(path, follow_symlinks=False)
        attributes = sorted((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)
        size = "" if stat.S_ISDIR(found.st_mode) else found.st_size
        links = "" if stat.S_ISDIR(found.st_mode) else (found.st_nlink, first_names.setdefault(found.st_ino, path))
        print(path, oct(found.st_mode), found.st_uid, found.st_gid, size, found.st_mtime_ns, found.st_rdev, links,
              content_of(path, found), attributes)  # fmt: skip


{"make": make, "list": say}[verb]()
