// Runs the attacks of `alcove test --red-team`. No attack may succeed. Some tests first remove a defence, such as the firewall, and
// the report must then say "not held".
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { boundaries, runAttacks } from '../red-team/attack.ts'
import { attacks } from '../red-team/attacks.ts'
import { tooMuchOf } from '../red-team/outside.ts'
import { createBox } from './box.ts'
import { platform } from './harness.ts'

const soon = () => ({ untilMs: Date.now() + 180_000 })

suite('the attacks of `alcove test --red-team`', () => {
  test('`alcove test --red-team` attacks every boundary in SECURITY.md, and no attack succeeds', async () => {
    assert.deepEqual(
      boundaries.filter((boundary) => !attacks.some((attack) => attack.boundary === boundary)),
      [],
    )
    await using alcove = await platform()
    await using box = await createBox(alcove)
    await using root = await createBox(alcove, { user: 'root' })
    const rows = await runAttacks(attacks, { platform: alcove, box, root }, soon())
    assert.deepEqual(
      rows
        .filter(({ result }) => result !== 'held')
        .map(({ name, result, sentence }) => `${name}: ${result}: ${sentence}`),
      [],
    )
  })

  test('`alcove test --red-team` reports a successful attack ("not held") if the firewall is missing', async () => {
    await using alcove = await platform({ own: true, image: 'small' })
    await using box = await createBox(alcove)
    await using root = await createBox(alcove, { user: 'root' })
    const { instance } = dataDirectoryAt(alcove.data)
    const takeFirewall = () => {
      const shape = new RegExp(`^table \\w+ alcove_${instance}$`, 'gm')
      const tables = spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout.match(shape) ?? []
      for (const table of tables) spawnSync('nft', ['delete', ...table.split(' ')])
    }
    // The runner restores a missing firewall table, so remove the table again and again during the attack.
    const taking = setInterval(takeFirewall, 100)
    try {
      const network = attacks.filter(({ boundary }) => boundary === 'sandbox → network')
      const [row] = await runAttacks(network, { platform: alcove, box, root }, soon())
      assert.equal(row?.result, 'not held', row?.sentence ?? '')
    } finally {
      clearInterval(taking)
    }
  })

  test('`alcove test --red-team` reports "not held" if commands in a sandbox have no system call filter', async () => {
    await using alcove = await platform()
    await using root = await createBox(alcove, { user: 'root' })
    const mark = `600.${process.pid}`
    await root.run(`setsid sleep ${mark} > /dev/null 2>&1 &`)
    const findPid = () => alcove.hostPid(`sleep ${mark}`)
    let pid = await findPid()
    for (; pid === undefined; pid = await findPid()) await pause(50)
    const inside = ['-t', `${pid}`, '--all', '--', '/bin/sh', '-c']
    // A command that the host runs in the sandbox's namespaces does not have the sandbox's system call filter.
    const run = async (command: string) => spawnSync('nsenter', [...inside, command], { encoding: 'utf8' }).stdout
    const unfiltered = { ...root, run, try: async (command: string) => ({ exitCode: 0, result: await run(command) }) }
    const calls = attacks.filter(({ name }) => name === 'system calls that open more of the kernel')
    const [row] = await runAttacks(calls, { platform: alcove, box: unfiltered, root: unfiltered }, soon())
    assert.match(`${row?.result}: ${row?.sentence}`, /^not held: .*there is no filter; .*keyctl/)
  })

  test('`alcove test --red-team` reports a server program that has no system call filter or can see secrets', async () => {
    await using alcove = await platform()
    const loose = spawn('sleep', ['600'], { stdio: 'ignore' })
    try {
      const found = tooMuchOf({ name: 'sleep', pid: loose.pid!, uid: 61002 }, alcove.data)
      assert.ok(
        found.includes('sleep: no filter') && found.includes(`sleep sees ${alcove.data}/secrets`),
        found.join(' '),
      )
    } finally {
      loose.kill('SIGKILL')
    }
  })

  test('an attack that throws, or that would begin after the time limit, is reported as "could not be tried"', async () => {
    const failing = { ...attacks[0]!, try: () => Promise.reject(new Error('no tool for it')) }
    const ground = {} as Parameters<typeof runAttacks>[1]
    const [row] = await runAttacks([failing], ground, soon())
    assert.deepEqual([row?.result, row?.sentence], ['could not be tried', 'no tool for it'])
    const [late] = await runAttacks([failing], ground, { untilMs: 0 })
    assert.equal(late?.result, 'could not be tried')
  })
})
