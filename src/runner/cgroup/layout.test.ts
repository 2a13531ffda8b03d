import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { mountsToHide, ownProcsFile, parseLayout, readLayout } from './layout.ts'

const line = (path: string, type: string, options: string) =>
  `36 25 0:31 / ${path} rw,nosuid shared:9 - ${type} ${type} rw,${options}`

const v1 = ['cpu', 'cpuacct', 'cpuset', 'memory', 'pids', 'freezer'].map((name) =>
  line(`/sys/fs/cgroup/${name}`, 'cgroup', name),
)

suite('where the cgroup hierarchies of a host are mounted', () => {
  test('the cgroup hierarchy of a host that mounts only v2 is found', () => {
    const layout = parseLayout(`${line('/', 'ext4', 'x')}\n${line('/sys/fs/cgroup', 'cgroup2', 'nsdelegate')}\n`)
    assert.deepEqual(layout, { version: 2, root: '/sys/fs/cgroup' })
    assert.deepEqual(mountsToHide(layout), [])
  })

  test('`ownProcsFile` finds `cgroup.procs` of the runner’s own cgroup, if visible, in cgroup v1 and v2', () => {
    assert.equal(ownProcsFile({ version: 2, root: '/sys/fs/cgroup' }, '0::/../no/such/place\n'), undefined)
    assert.equal(ownProcsFile(parseLayout(v1.join('\n')), '4:cpu:/a\n'), undefined)
    const actual = ownProcsFile(readLayout())
    assert.ok(actual === undefined || readFileSync(actual, 'utf8').split('\n').includes(String(process.pid)))
  })

  test('the hierarchies of a host with only cgroup v1 are found, even if two controllers share one hierarchy', () => {
    const layout = parseLayout(
      [
        line('/cg/cpu,cpuacct', 'cgroup', 'cpu,cpuacct'),
        ...v1.slice(3),
        line('/cg/systemd', 'cgroup', 'name=systemd'),
      ].join('\n'),
    )
    assert.ok(layout.version === 1)
    assert.equal(layout.roots.cpu, '/cg/cpu,cpuacct')
    assert.equal(layout.roots.cpuacct, '/cg/cpu,cpuacct')
    assert.equal(layout.allRoots.length, 5)
    assert.deepEqual(mountsToHide(layout), [])
  })

  test('on a host with cgroup v1 and v2, v1 is used, and the mount of v2 is hidden from the OCI runtime', () => {
    const layout = parseLayout([...v1, line('/sys/fs/cgroup/unified', 'cgroup2', 'x')].join('\n'))
    assert.equal(layout.version, 1)
    assert.deepEqual(mountsToHide(layout), ['/sys/fs/cgroup/unified'])
  })

  test('the mount point of a cgroup hierarchy may contain a space', () => {
    assert.deepEqual(parseLayout(line('/a\\040b', 'cgroup2', 'x')), { version: 2, root: '/a b' })
  })

  test('if a cgroup controller is missing, the error names the controller', () => {
    assert.throws(() => parseLayout(''), /No cgroups are mounted/)
    assert.throws(() => parseLayout(v1.slice(0, 4).join('\n')), /lacks the cgroup controllers pids, freezer/)
  })
})
