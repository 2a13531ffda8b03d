// Attacks by code in a sandbox: on the host, on the sandbox's limits, on networks and on the runner.
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Box } from '../sandboxes/box.ts'
import { type Attack, held, notHeld, unless } from './attack.ts'

/**
 * Returns a command that runs a Python program. The program is encoded, so that no error message of the shell contains its text.
 */
const python = (program: string) => `echo ${Buffer.from(program).toString('base64')} | base64 -d | python3 - 2>&1`

/** Runs commands that must all fail. Returns the commands that have succeeded. */
const thatWork = async (box: Box, commands: readonly string[]): Promise<string[]> => {
  const script = commands.map((command, index) => `(${command}) >/dev/null 2>&1 && echo ${index}`).join('\n')
  const { result } = await box.try(`${script}\ntrue`)
  return result
    .split('\n')
    .filter(Boolean)
    .map((index) => commands[Number(index)] ?? index)
}

const breakingOut: readonly string[] = [
  'mount -t tmpfs none /mnt',
  'mount -o remount,rw /proc/sys',
  'unshare -U true',
  'unshare -m true',
  'nsenter -t 1 -m true',
  'chroot /proc/1/root true',
  'mknod /tmp/disk b 8 0',
  'cat /proc/kcore',
  'dmesg',
  'swapon /dev/null',
  'date -s 2001-01-01',
  'hostname other',
  'echo 1 > /proc/sys/kernel/sysrq',
  'echo x > /proc/sys/kernel/core_pattern',
  'mkdir /sys/fs/cgroup/escape',
]

const callsThatOpenTheKernel = python(`
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
calls = dict(bpf=(321, 280), keyctl=(250, 219), perf_event_open=(298, 241), userfaultfd=(323, 282), kexec_load=(246, 104),
  init_module=(175, 105), open_by_handle_at=(304, 265), fsopen=(430, 430), setns=(308, 268))
for name, (amd, arm) in calls.items():
  if libc.syscall(amd if x86 else arm, 0, 0, 0, 0, 0) != -1: print(name)
  elif ctypes.get_errno() not in (1, 38): print(name, ctypes.get_errno())`)

/**
 * Makes 32-bit system calls from a 64-bit program: `push rbx; mov eax, edi; mov ebx, esi; xor ecx, ecx; xor edx, edx; int 0x80; pop
 * rbx; ret`.
 */
const callsOf32Bits = python(`
import ctypes, mmap, platform
if platform.machine() == "x86_64":
  code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
  code.write(bytes.fromhex("5389f889f331c931d2cd805bc3"))
  call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
  calls = dict(mount=(21, 0), umount=(22, 0), bpf=(357, 0), keyctl=(288, 0), perf_event_open=(336, 0), userfaultfd=(374, 0),
    init_module=(128, 0), setns=(346, 0), fsopen=(430, 0), unshare=(310, 0x10000000), socketcall=(102, 1), vsock=(359, 40))
  for name, given in calls.items():
    answer = call(*given)
    if answer not in (-1, -38, -97): print(name, answer)`)

const connectTo = (targets: readonly string[]) =>
  python(`
import socket, concurrent.futures
def tries(target):
  host, port = target.rsplit(":", 1)
  try: socket.create_connection((host, int(port)), 3).close(); return target
  except OSError: return None
with concurrent.futures.ThreadPoolExecutor(16) as pool:
  print("\\n".join(filter(None, pool.map(tries, "${targets.join(' ')}".split()))))`)

const gateway = python(`
import socket, struct
for line in open("/proc/net/route").readlines()[1:]:
  fields = line.split()
  if fields[1] == "00000000": print(socket.inet_ntoa(struct.pack("<I", int(fields[2], 16))))`)

export const attacksFromInside: readonly Attack[] = [
  {
    name: 'mounts, namespaces, devices and kernel settings, as root inside',
    boundary: 'sandbox → host',
    try: async ({ root }) => unless(await thatWork(root, breakingOut), `${breakingOut.length} ways are refused`),
  },
  {
    name: 'system calls that open more of the kernel',
    boundary: 'sandbox → host',
    try: async ({ root }) => {
      const status = await root.run('cat /proc/self/status')
      const isFiltered = /^Seccomp:\t2$/m.test(status) && /^NoNewPrivs:\t1$/m.test(status)
      // `root.run` throws if a program fails. The program with the 32-bit calls fails on a kernel without 32-bit support, so run it
      // by `root.try`.
      const said = [await root.run(callsThatOpenTheKernel), (await root.try(callsOf32Bits)).result]
      const calls = said.flatMap((text) => text.split('\n')).filter(Boolean)
      return unless([...(isFiltered ? [] : ['there is no filter']), ...calls], 'the filter refuses them')
    },
  },
  {
    name: 'reading keys and signalling processes of the host',
    boundary: 'sandbox → host',
    try: async ({ root, platform }) => {
      const pid = await platform.pidOf('runner')
      const commands = [`test -e ${platform.data}`, `grep -q bin/runner /proc/${pid}/cmdline`, 'ls /proc/1/root/']
      return unless(await thatWork(root, commands), 'nothing of the host is in sight')
    },
  },
  {
    name: 'more memory than it was given',
    boundary: 'sandbox → resources',
    try: async ({ box }) => {
      const gib = Number(box.record['memory'])
      const steps = gib * 2 * 64
      const { result } = await box.try(
        python(`held = [bytearray(1 << 24) for _ in range(${steps})]\nprint("got", "it", "all")`),
      )
      return result.includes('got it all') ? notHeld(`it took ${gib * 2} GiB`) : held(`it ends at ${gib} GiB`)
    },
  },
  {
    name: 'more disk than it was given, at once',
    boundary: 'sandbox → resources',
    try: async ({ root }) => unless(await thatWork(root, ['fallocate -l 1T /big']), 'a file of 1 TiB is refused'),
  },
  {
    name: 'processes without end',
    boundary: 'sandbox → resources',
    try: async ({ box }) => {
      const fork = python(`
import os, signal, time
made = []
try:
  while len(made) < 40000:
    pid = os.fork()
    if pid == 0: time.sleep(30); os._exit(0)
    made.append(pid)
except OSError: print("refused after", len(made))
else: print("never refused")
for pid in made: os.kill(pid, signal.SIGKILL)`)
      const { result } = await box.try(fork)
      const [refused] = /refused after \d+/.exec(result) ?? []
      if (refused !== undefined) return held(refused)
      return result.includes('never refused') ? notHeld('40,000 processes started') : held('the sandbox ended it')
    },
  },
  {
    name: 'the host, metadata addresses, private networks and a sibling',
    boundary: 'sandbox → network',
    try: async ({ box, root }) => {
      const listener = createServer((socket) => socket.end())
      await new Promise<void>((resolve) => listener.listen(0, '0.0.0.0', resolve))
      try {
        const { port } = listener.address() as { port: number }
        const own = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
        const addresses = own
          .filter(({ family, internal }) => family === 'IPv4' && !internal)
          .map((each) => each.address)
        const host = [await box.run(gateway), ...addresses].filter(Boolean).slice(0, 32)
        const sibling = (await root.run('hostname -I')).replaceAll(' ', '\n')
        if (sibling === '') throw new Error('the address of a sibling is not known')
        await root.run('setsid python3 -m http.server 8099 >/dev/null 2>&1 & sleep 0.5')
        const targets = [
          ...host.map((address) => `${address}:${port}`),
          ...sibling
            .split('\n')
            .filter(Boolean)
            .map((address) => `${address}:8099`),
          ...['169.254.169.254:80', '10.0.0.1:80', '192.168.0.1:80', '192.168.1.1:80', '172.16.0.1:22'],
        ]
        const reached = await box.run(connectTo(targets))
        return unless(reached.split('\n').filter(Boolean), `none of ${targets.length} addresses answers`)
      } finally {
        listener.close()
      }
    },
  },
  {
    name: 'reading, tracing and ending the agent, as root inside',
    boundary: 'sandbox → runner',
    try: async ({ root }) => {
      const reads = ['cat /proc/1/environ', 'cat /proc/1/maps', 'head -c1 /proc/1/mem', 'cat /proc/1/fd/3']
      const got = await thatWork(root, reads)
      await root.try('kill -KILL 1; kill -STOP 1; true')
      const alive = (await root.run('echo alive')) === 'alive' ? [] : ['PID 1 was ended']
      return unless([...got, ...alive], 'it can be neither read nor ended')
    },
  },
]
