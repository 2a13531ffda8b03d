// For tests: the files of an image with the busybox of this machine, as entries of a tar.
import { existsSync, readFileSync } from 'node:fs'
import type { TarEntry } from '../images/testing/oci-image.ts'

const missing = ['/usr/bin/skopeo', '/usr/bin/umoci', '/bin/busybox'].find((path) => !existsSync(path))
/** Reason to skip tests that need an image with busybox, or false if this machine can run such tests. */
export const needsBusybox = missing === undefined ? false : `needs ${missing}`

const applets = [
  'sh',
  'cat',
  'ls',
  'echo',
  'mkdir',
  'stat',
  'id',
  'rm',
  'ln',
  'chmod',
  'chown',
  'test',
  'wget',
  'mkfifo',
  'env',
]

/** Returns the files of a small image: a shell, two users and a list of packages. */
export const busyboxFiles = (): TarEntry[] => [
  { path: 'bin', type: '5' },
  { path: 'bin/busybox', content: readFileSync('/bin/busybox'), mode: 0o755 },
  ...applets.map((name): TarEntry => ({ path: `bin/${name}`, type: '2', target: 'busybox' })),
  { path: 'etc', type: '5' },
  { path: 'etc/passwd', content: 'root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/:/bin/sh\n' },
  { path: 'etc/group', content: 'root:x:0:\napp:x:1000:\n' },
  { path: 'tmp', type: '5', mode: 0o1777 },
  { path: 'var/lib/pkg', type: '5' },
  { path: 'var/lib/pkg/list', content: 'of the image\n' },
]
