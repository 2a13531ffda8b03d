import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { ageOf } from './crun.ts'
import { asRoot, type Finding } from './finding.ts'
import { inspectHost } from './inspect.ts'
import { cgroupModeIn, linesWithOurIds } from './isolation.ts'
import { missingCommands, requiredPackages } from './packages.ts'

suite('inspecting the host', () => {
  let directory: string
  let findings: Finding[]

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'alcove-inspect-'))
    findings = await inspectHost({ dataDir: join(directory, 'not/there/yet') })
  })
  after(() => rm(directory, { recursive: true, force: true }))

  test('`alcove doctor` prints one finding for each feature of the host, and every probe finishes', () => {
    const expected = [
      ...['root', 'kernel', 'architecture', 'system packages', 'memory', 'disk space', 'open files', 'KVM', 'FUSE'],
      ...['user namespaces', 'ids', 'overlay', 'system call filter', 'cgroups', 'disk limits', 'disk speed'],
      ...['network namespaces', 'nftables', 'packet forwarding', 'crun'],
    ]
    assert.deepEqual(
      findings.map(({ name }) => name),
      expected,
    )
    const unfinished = findings.filter(({ found }) => found.startsWith('could not be checked'))
    assert.deepEqual(unfinished, [])
  })

  test('a finding about a missing feature says what the user loses', () => {
    for (const { name, status, costs } of findings) assert.ok(status === 'ok' || costs !== undefined, name)
  })

  test('`alcove doctor` leaves no files and no processes on the host', async () => {
    assert.deepEqual(await readdir(directory), [])
    assert.ok(!(await readFile('/proc/self/mountinfo', 'utf8')).includes(directory))
    for (const parent of ['/sys/fs/cgroup', '/sys/fs/cgroup/pids']) {
      const names: string[] = await readdir(parent).catch(() => [])
      assert.ok(!names.includes(`alcove-doctor-${process.pid}`))
    }
  })

  test('`alcove doctor` without root skips a probe that needs root, and the finding says so', async () => {
    const probe = asRoot('overlay', () => assert.fail('it ran'))
    const finding = await probe.run({ dataDir: '/', scratch: '/', isRoot: false })
    assert.deepEqual([finding.status, finding.found], ['warn', 'not checked'])
  })
})

suite('the cgroup mode of a host', () => {
  const v2 = '30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate'
  const cpu = '31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct'
  const pids = '32 23 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids'
  const unified = '33 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw'

  test('`alcove doctor` finds the mode v2 on a host that has only cgroup v2 (`cgroupModeIn`)', () => {
    assert.deepEqual(cgroupModeIn(v2, 'cpu memory pids\n'), { mode: 'v2', controllers: ['cpu', 'memory', 'pids'] })
  })
  test('`alcove doctor` finds the mode hybrid and all controllers on a host with both cgroup versions', () => {
    const found = cgroupModeIn([cpu, pids, unified].join('\n'), 'hugetlb\n')
    assert.deepEqual(found, { mode: 'hybrid', controllers: ['cpu', 'pids', 'hugetlb'] })
  })
  test('`alcove doctor` finds the mode v1 on a host that has only cgroup v1 (`cgroupModeIn`)', () =>
    assert.deepEqual(cgroupModeIn(`${cpu}\n${pids}\n`, ''), { mode: 'v1', controllers: ['cpu', 'pids'] }))
  test('`alcove doctor` recognizes a host without cgroups (`cgroupModeIn`)', () =>
    assert.deepEqual(cgroupModeIn('1 1 0:1 / / rw - ext4 /dev/sda rw', ''), { mode: 'none', controllers: [] }))
})

suite('the system packages that Alcove needs', () => {
  test('the list of required system packages has each package once, with the reason why it is needed', () => {
    assert.equal(new Set(requiredPackages.map(({ name }) => name)).size, requiredPackages.length)
    for (const { name, why } of requiredPackages) assert.ok(why.length > 10, name)
  })
  test('`missingCommands` returns only the system packages whose command or file does not exist', () => {
    const shell = { name: 'dash', command: 'sh', why: 'it is everywhere' }
    const nothing = { name: 'nothing', command: 'alcove-no-such-command', why: 'it is nowhere' }
    const file = { name: 'file', command: '/no/such/file', why: 'it is nowhere' }
    assert.deepEqual(missingCommands([shell, nothing, file]), [nothing, file])
  })
})

test('`ageOf` returns the time since a date in years, or in months if less than a year has passed', () => {
  const now = new Date('2026-06-01')
  assert.equal(ageOf(new Date('2023-05-01'), now), '3 years')
  assert.equal(ageOf(new Date('2025-05-01'), now), '1 year')
  assert.equal(ageOf(new Date('2026-04-20'), now), '1 month')
  assert.equal(ageOf(new Date('2027-01-01'), now), '0 months')
})

test('`linesWithOurIds` returns the lines of /etc/subuid with ids that sandboxes use', () => {
  assert.deepEqual(linesWithOurIds('ann:100000:65536\nalcove:165536:65536\nlxd:1000000000:1000000\n'), [])
  assert.deepEqual(linesWithOurIds('bob:165536:65536\neve:1500000000:1\n'), ['bob:165536:65536', 'eve:1500000000:1'])
})
