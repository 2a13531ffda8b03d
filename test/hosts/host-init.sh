#!/bin/sh
# The first process of a host of a test, in PID, mount and network namespaces of its own. When it is killed, every
# process of the host ends, as in a power failure.
# $1: an empty directory for a moment; $2: a file that appears when the host is ready.
set -eu
# The copied mounts of servers of other tests would keep their disks in use after those have ended.
awk '$1 ~ "^/dev/loop" { print $2 }' /proc/self/mounts | while read -r place; do
  umount -l "$place" || :
done
# The files of /sys show the network of this host. Control groups are those of the machine.
mount --rbind /sys/fs/cgroup "$1"
mount -t sysfs sysfs /sys
mount --rbind "$1" /sys/fs/cgroup
umount -l "$1"
# A host that was just switched on has nothing in /run.
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/lock /run/netns
ip link set lo up
: >"$2"
# Waiting collects processes whose parents have ended.
while :; do
  sleep 3600 &
  wait
done
