// Command lines that give privileges away before a program's first instruction.

type View = { source: string; at: string }

type Confined = { command: readonly string[]; uid: number; views: readonly View[]; mayBindLowPorts: boolean }

// Runs as root in the new mount namespace: "$1" counts the views, then come their pairs, then the command.
// Where the host's root is not a shared mount, unmounts there would not reach this namespace, and it would keep the pools of
// every other server on this host busy: so it lets go of all of them.
const showViews = `set -e
while read -r _ _ _ _ at _; do
  case $at in */runner/pool) umount -l -- "$(printf %b "$at")" || : ;; esac
done </proc/self/mountinfo
n=$1; shift
while [ "$n" -gt 0 ]; do mount -o bind,ro,nosuid,nodev -- "$1" "$2"; shift 2; n=$((n - 1)); done
cd /
exec "$@"`

const noPrivileges = ['--no-new-privs', '--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all']
const onlyLowPorts = ['--inh-caps=-all,+net_bind_service', '--ambient-caps=-all,+net_bind_service', '--no-new-privs']

/** The program ends with its parent, also when that is killed: the kernel sends the signal. */
const endWithParent = (signal: string) => ['setpriv', '--pdeathsig', signal]

/**
 * A command for a program that is root no more: its own uid and gid, no groups, no capabilities, none to be gained.
 * It has a mount namespace of its own where each view is read-only at its place, since the directory it really lies in
 * (such as /root) may be closed to it. It keeps no storage of the host busy.
 */
export const confined = ({ command, uid, views, mayBindLowPorts }: Confined): string[] => [
  ...['unshare', '--mount', '--propagation', 'slave', '--'],
  ...['sh', '-c', showViews, 'sh', String(views.length), ...views.flatMap(({ source, at }) => [source, at])],
  ...endWithParent('TERM'),
  ...[`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'],
  ...(mayBindLowPorts ? onlyLowPorts : noPrivileges),
  ...command,
]

/** A command for a program that stays root. */
export const unconfined = (command: readonly string[]): string[] => [...endWithParent('TERM'), ...command]
