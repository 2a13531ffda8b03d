// GNU tar on a hostile disk. It has to be root of the host, since the attributes of overlays are for root only, so what a fault in
// it could reach is taken away instead:
//
// - its root directory holds the programs of the host, read-only, and the one disk, on which no device can be opened;
// - it has the capabilities that making files takes and cannot gain others, no network, and the system call filter of programs
//   without privileges, by which it can neither mount, nor start processes, nor touch other ones;
// - it dies with the runner, and is process 1 of a namespace of its own. That also makes its output the same each time: tar
//   writes its process id into the headers of sparse files.
import { filterProgram } from '#src/kit/confined.ts'

export type TarPlace = { directory: string; isWritten: boolean }

const capabilities = 'chown,dac_override,dac_read_search,fowner,fsetid,mknod,setfcap,sys_admin'
const bounding = ['-all', ...capabilities.split(',').map((name) => `+${name}`)].join(',')

// The new root is put together over /sys of a mount namespace of its own: that is on every host, and no disk lies below it. `$1` is the disk, `$2` ro or rw, `$3` the filter.
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

/** The words of a command. It works in the directory. `mostBytes` is of address space. */
export const confinedTar = (
  { directory, isWritten, mostBytes }: TarPlace & { mostBytes: number },
  args: readonly string[],
): string[] => [
  ...['nice', '-n', '10', 'prlimit', `--as=${mostBytes}`, '--', 'setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--mount', '--net', '--ipc', '--pid', '--fork', '--kill-child', '--'],
  ...['sh', '-c', enter, 'tar', directory, isWritten ? 'rw' : 'ro', filterProgram, ...args],
]
