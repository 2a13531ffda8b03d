// Runs GNU tar on a hostile disk. Only root of the host can read and set the attributes of overlays. If the disk exploits a
// fault in tar, these limits contain it:
//
// - tar's root directory contains only the host's programs, read-only, and one disk, on which no device can be opened;
// - tar has only the capabilities for making files, cannot gain others, and has no network; a system call filter forbids
//   mounting, starting processes and touching other processes;
// - tar ends when the runner ends. tar is process 1 of its own namespace, so its output is reproducible: tar writes its process
//   id into headers of sparse files.
import { filterProgram } from '#src/kit/confined.ts'

export type TarPlace = { directory: string; isWritten: boolean }

const capabilities = 'chown,dac_override,dac_read_search,fowner,fsetid,mknod,setfcap,sys_admin'
const bounding = ['-all', ...capabilities.split(',').map((name) => `+${name}`)].join(',')

// Builds tar's root directory at /sys, which exists on every host and has no file that tar needs. `$1` is the disk, `$2` is ro
// or rw, `$3` is the system call filter.
const enter = `set -e
at=/sys
mount -t tmpfs -o mode=755,size=1m,nosuid,nodev tmpfs $at
mkdir $at/usr $at/proc $at/disk $at/old
: >$at/confine
for name in bin sbin lib lib64; do
  if [ -L /$name ]; then ln -s usr/$name $at/$name
  elif [ -d /$name ]; then
    mkdir $at/$name
    mount --bind /$name $at/$name
    mount -o remount,bind,ro,nosuid,nodev $at/$name
  fi
done
mount --bind /usr $at/usr
mount -o remount,bind,ro,nosuid,nodev $at/usr
mount --bind -- "$3" $at/confine
mount -o remount,bind,ro,nosuid,nodev $at/confine
mount --bind -- "$1" $at/disk
mount -o remount,bind,$2,nosuid,nodev $at/disk
mount -t proc -o ro,nosuid,nodev,noexec proc $at/proc
shift 3
cd $at
pivot_root . old
umount -l /old
cd /disk
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=${bounding} -- /confine filter none alone exec tar "$@"`

/** Returns the command line that runs tar with `args` in `directory`. `mostBytes` limits tar's address space. */
export const confinedTar = (
  { directory, isWritten, mostBytes }: TarPlace & { mostBytes: number },
  args: readonly string[],
): string[] => [
  ...['nice', '-n', '10', 'prlimit', `--as=${mostBytes}`, '--', 'setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--mount', '--net', '--ipc', '--pid', '--fork', '--kill-child', '--'],
  ...['sh', '-c', enter, 'tar', directory, isWritten ? 'rw' : 'ro', filterProgram, ...args],
]
