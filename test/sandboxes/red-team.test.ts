// The attacks of `alcove test --red-team`: each holds, and the table says so when a defence is gone.
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

suite('the red team', () => {
  test('tries every boundary of SECURITY.md, and all hold', async () => {
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

  test('says "not held" where the firewall is gone', async () => {
    await using alcove = await platform({ own: true })
    await using box = await createBox(alcove)
    await using root = await createBox(alcove, { user: 'root' })
    const { instance } = dataDirectoryAt(alcove.data)
    const takeFirewall = () => {
      const shape = new RegExp(`^table \\w+ alcove_${instance}$`, 'gm')
      const tables = spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout.match(shape) ?? []
      for (const table of tables) spawnSync('nft', ['delete', ...table.split(' ')])
    }
    // The runner puts its table back, so it is taken again and again while the attack goes on.
    const taking = setInterval(takeFirewall, 100)
    try {
      const network = attacks.filter(({ boundary }) => boundary === 'sandbox → network')
      const [row] = await runAttacks(network, { platform: alcove, box, root }, soon())
      assert.equal(row?.result, 'not held', row?.sentence ?? '')
    } finally {
      clearInterval(taking)
    }
  })

  test('says "not held" where commands of a sandbox have no system call filter', async () => {
    await using alcove = await platform()
    await using root = await createBox(alcove, { user: 'root' })
    const mark = `600.${process.pid}`
    await root.run(`setsid sleep ${mark} > /dev/null 2>&1 &`)
    const findPid = () => alcove.hostPid(`sleep ${mark}`)
    let pid = await findPid()
    for (; pid === undefined; pid = await findPid()) await pause(50)
    const inside = ['-t', `${pid}`, '--all', '--', '/bin/sh', '-c']
    // They run in its namespaces, and did not come through what filters.
    const run = async (command: string) => spawnSync('nsenter', [...inside, command], { encoding: 'utf8' }).stdout
    const unfiltered = { ...root, run, try: async (command: string) => ({ exitCode: 0, result: await run(command) }) }
    const calls = attacks.filter(({ name }) => name === 'system calls that open more of the kernel')
    const [row] = await runAttacks(calls, { platform: alcove, box: unfiltered, root: unfiltered }, soon())
    assert.match(`${row?.result}: ${row?.sentence}`, /^not held: .*there is no filter; .*keyctl/)
  })

  test('says what a program has too much where it is not confined', async () => {
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

  test('says "could not be tried" of an attack that fails by itself, and of all when the time is over', async () => {
    const failing = { ...attacks[0]!, try: () => Promise.reject(new Error('no tool for it')) }
    const ground = {} as Parameters<typeof runAttacks>[1]
    const [row] = await runAttacks([failing], ground, soon())
    assert.deepEqual([row?.result, row?.sentence], ['could not be tried', 'no tool for it'])
    const [late] = await runAttacks([failing], ground, { untilMs: 0 })
    assert.equal(late?.result, 'could not be tried')
  })
})
