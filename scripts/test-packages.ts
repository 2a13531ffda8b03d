// System packages that only tests need. The tests run programs from these packages outside of a sandbox.
import type { RequiredPackage } from '#src/doctor/packages.ts'

export const testPackages: readonly RequiredPackage[] = [
  { name: 'git', command: 'git', why: 'is what the tests of the git routes run' },
  { name: 'python3', command: '/usr/bin/python3', why: 'is what the tests of code-run and the interpreter run' },
  { name: 'chromium', command: 'chromium', why: 'is the browser that the tests of previews look through' },
  { name: 'openssl', command: 'openssl', why: 'makes the certificate that these tests serve TLS with' },
  {
    name: 'python3-requests',
    command: '/usr/lib/python3/dist-packages/requests/__init__.py',
    why: 'is a client that the tests of refused uploads send with',
  },
  {
    name: 'python3-httpx',
    command: '/usr/lib/python3/dist-packages/httpx/__init__.py',
    why: 'is a client that the tests of refused uploads send with',
  },
  { name: 'strace', command: 'strace', why: 'records what is synced, for the tests that cut the power' },
  { name: 'vim-tiny', command: 'vi', why: 'is what the tests of terminals draw a whole screen with' },
  { name: 'openssh-client', command: 'ssh', why: 'is the client that the tests of the SSH gateway use' },
  { name: 'rsync', command: 'rsync', why: 'is what these tests copy directories with' },
  { name: 'sshfs', command: 'sshfs', why: 'is what these tests mount a sandbox with' },
  { name: 'dropbear-bin', command: '/usr/sbin/dropbear', why: 'is the SSH server that the tests clone from' },
  { name: 'busybox-static', command: 'busybox', why: 'is all that the barest image of the tests has' },
  {
    name: 'python3-matplotlib',
    command: '/usr/lib/python3/dist-packages/matplotlib/__init__.py',
    why: 'draws the charts that the tests of code-run look at',
  },
  {
    name: 'python3-swift',
    command: '/usr/lib/python3/dist-packages/swift/__init__.py',
    why: 'is the S3 server that the tests of archives talk to',
  },
]
