import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { cpuLimit, parseHardLimits, pidsLimit, resourceLimits } from '#src/runner/cgroup/sandbox-limits.ts'
import { hostnameOf, makeConfig, type SandboxConfig } from './config.ts'
import { makeSeccompProfile } from './seccomp/profile.ts'

const sandbox: SandboxConfig = {
  hostname: 'box',
  rootfs: '/run/x/rootfs',
  own: '/run/x/own',
  agent: 'agent-1',
  sys: '/run/x/sys',
  cgroupVersion: 1 as const,
  diskSpeed: undefined,
  cpus: '0-1',
  ids: [{ inside: 0, outside: 165_536 + 65_536, count: 65_536 }],
  netnsPath: '/run/netns/x-1',
  cgroupsPath: '/x/1',
  cpu: 1.5,
  memoryGiB: 2,
  limitsSwap: true,
  limitsSockets: true,
  resourceLimits: [],
  filter: { kind: 'compiled', base64: 'AAAA' },
  maskedPaths: [],
  volumes: [],
  sudo: undefined,
}

suite('the configuration of a sandbox for the OCI runtime', () => {
  test('a sandbox has its own namespaces of all kinds; its root user is unprivileged on the host', () => {
    const { linux } = makeConfig(sandbox)
    assert.deepEqual(linux.namespaces.map(({ type }) => type).sort(), [
      'cgroup',
      'ipc',
      'mount',
      'network',
      'pid',
      'user',
      'uts',
    ])
    assert.deepEqual(linux.uidMappings, [{ containerID: 0, hostID: 231_072, size: 65536 }])
  })

  test('the OCI runtime’s configuration has the CPU and memory limits of the sandbox’s assignment', () => {
    const { resources } = makeConfig(sandbox).linux
    assert.deepEqual(resources.cpu, { shares: 1536, quota: 150_000, period: 100_000, cpus: '0-1' })
    assert.deepEqual(resources.memory, { limit: 2 ** 31, swap: 2 ** 31, kernelTCP: 2 ** 28 })
    const uncounted = { ...sandbox, limitsSwap: false, limitsSockets: false }
    assert.deepEqual(makeConfig(uncounted).linux.resources.memory, { limit: 2 ** 31 })
    assert.equal(resources.pids.limit, 8192)
  })

  test('a sandbox always has a system call filter: compiled by Alcove, or compiled by the OCI runtime', () => {
    const compiled = makeConfig(sandbox)
    assert.deepEqual(compiled.annotations, { 'run.oci.seccomp_bpf_data': 'AAAA' })
    assert.equal('seccomp' in compiled.linux, false)
    const profile = makeSeccompProfile('arm64')
    const plain = makeConfig({ ...sandbox, filter: { kind: 'profile', profile } })
    assert.deepEqual(plain.annotations, {})
    assert.equal('seccomp' in plain.linux && plain.linux.seccomp, profile)
  })

  test('only files made for a sandbox are bind-mounted; files that the sandbox must not write are read-only', () => {
    const binds = makeConfig(sandbox).mounts.filter(({ type }) => type === 'bind')
    const shown = ['meminfo', 'cpuinfo', 'online'].map((name) => `/run/x/own/${name}`)
    assert.deepEqual(
      binds.map(({ source }) => source),
      [
        '/run/x/sys',
        '/run/x/own/agent-1',
        ...shown,
        '/run/x/own/hostname',
        '/run/x/own/hosts',
        '/run/x/own/resolv.conf',
        '/run/x/own/machine-id',
        '/run/x/own/zz-alcove-path.sh',
      ],
    )
    for (const bind of binds.slice(0, 5)) assert.ok(bind.options.includes('ro'))
  })

  test('a sandbox’s cgroup directory is read-only, even if the runtime itself would leave it writable', () => {
    const cgroups = (version: 1 | 2) =>
      makeConfig({ ...sandbox, cgroupVersion: version })
        .mounts.filter(({ destination }) => destination === '/sys/fs/cgroup')
        .map(({ options }) => [options.includes('remount'), options.includes('ro')])
    assert.deepEqual(cgroups(1), [
      [false, true],
      [true, true],
    ])
    assert.deepEqual(cgroups(2), [[false, true]])
  })

  test('a limit of a sandbox’s disk speed applies to reads and writes; by default there is no limit', () => {
    const blockIOAt = (
      diskSpeed: typeof sandbox.diskSpeed | { major: number; minor: number; bytesPerSecond: number },
    ) => makeConfig({ ...sandbox, diskSpeed }).linux.resources.blockIO
    assert.equal(blockIOAt(undefined), undefined)
    const bounded = [{ major: 7, minor: 3, rate: 1000 }]
    assert.deepEqual(blockIOAt({ major: 7, minor: 3, bytesPerSecond: 1000 }), {
      throttleReadBpsDevice: bounded,
      throttleWriteBpsDevice: bounded,
    })
  })

  test('a sandbox’s host name is the first part of its id, with only characters that a host name may have', () => {
    assert.equal(hostnameOf('0123456789abcdef'), '0123456789ab')
    assert.equal(hostnameOf('0123456789a-cdef'), '0123456789a')
    assert.equal(hostnameOf('-'), 'sandbox')
  })
})

suite('limits of a sandbox in the runtime’s configuration', () => {
  test('a sandbox’s CPU limit below the kernel’s minimum is raised to that minimum', () => {
    assert.deepEqual(cpuLimit({ cpu: 0.001, memoryGiB: 1 }), { shares: 2, quota: 1000, period: 100_000 })
  })

  test('limits of open files and core size never exceed the runner’s own hard limits', () => {
    const text = `Limit                     Soft Limit           Hard Limit           Units
Max core file size        0                    0                    bytes
Max open files            1024                 20000                files
`
    assert.deepEqual(resourceLimits(parseHardLimits(text)), [
      { type: 'RLIMIT_NOFILE', soft: 20000, hard: 20000 },
      { type: 'RLIMIT_CORE', soft: 0, hard: 0 },
    ])
    const unlimited = text
      .replaceAll('20000', 'unlimited')
      .replace('0                    bytes', 'unlimited            bytes')
    assert.deepEqual(
      resourceLimits(parseHardLimits(unlimited)).map(({ hard }) => hard),
      [65536, 1],
    )
  })

  test('a sandbox’s limit of processes grows with its memory, up to 32768 processes', () => {
    const of = (memoryGiB: number) => pidsLimit({ memoryGiB })
    assert.deepEqual([0.125, 0.25, 1, 2.5, 8, 64].map(of), [1024, 1024, 4096, 10_240, 32_768, 32_768])
  })

  test('a sandbox’s in-memory file systems have a limit of files, because files may use uncharged memory', () => {
    const options = (place: string) =>
      makeConfig(sandbox).mounts.find(({ destination }) => destination === place)?.options
    assert.ok(options('/dev')?.includes('nr_inodes=4096'))
    assert.ok(options('/dev/shm')?.includes('nr_inodes=16384'))
  })
})
