// What purge takes away, and what it leaves alone. No server runs here: the directories are made and marked,
// and their networks opened, only.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, suite, test } from 'node:test'
import { runDirectoryOf } from '#src/kit/instance.ts'
import { silentLog } from '#src/kit/log.ts'
import { rangeText } from '#src/runner/network/names.ts'
import { openNetworkPool } from '#src/runner/network/pool.ts'
import { giveUpRange } from '#src/runner/network/range.ts'
import { removeNetwork } from '#src/runner/network/remove.ts'
import { markOf, prepareDataDirectory } from '#src/up/data-directory.ts'

const program = resolve(import.meta.dirname, '../../bin/alcove.ts')
const purge = (path: string) => {
  const words = [program, 'purge', '--yes', '--data', path]
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', timeout: 60_000 })
  return { status, text: stdout, steps: stderr }
}

/** Every part of 10.0.0.0/8 that some server on this host holds. */
const claimed = () =>
  spawnSync('ip', ['-4', 'route', 'show', 'type', 'blackhole'], { encoding: 'utf8' })
    .stdout.split('\n')
    .map((line) => line.split(' ')[1])

suite('alcove purge', { skip: process.getuid?.() === 0 ? false : 'it needs root' }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-purge-'))
  after(() => rmSync(scratch, { recursive: true, force: true }))

  test('leaves a directory alone that is not recognisably of Alcove', () => {
    const path = join(scratch, 'theirs')
    for (const name of ['run', 'precious', 'log', 'secrets']) mkdirSync(join(path, name), { recursive: true })
    assert.deepEqual(purge(path), { status: 0, text: `There is nothing of Alcove in ${path}.\n`, steps: '' })
    assert.deepEqual(readdirSync(path), ['log', 'precious', 'run', 'secrets'])
  })

  test('removes what is ours and the directory, and says each step before it; done again, there is nothing', () => {
    const { path, runtime } = prepareDataDirectory(join(scratch, 'ours'))
    const { status, text, steps } = purge(path)
    assert.deepEqual([status, text], [0, `Removed ${path} and everything it had on this host.\n`])
    assert.deepEqual(steps.trim().split('\n'), [
      'Ending programs that still run …',
      'Ending sandboxes, and removing their networks and mounts …',
      `Removing the data in ${path} …`,
    ])
    assert.deepEqual([existsSync(path), existsSync(runtime)], [false, false])
    assert.deepEqual(purge(path), { status: 0, text: `There is nothing of Alcove in ${path}.\n`, steps: '' })
  })

  test('leaves what others put in a data directory, and says so', () => {
    const { path } = prepareDataDirectory(join(scratch, 'shared'))
    mkdirSync(join(path, 'images'))
    const { status, text } = purge(path)
    assert.equal(status, 0)
    assert.match(text, /still there:\n {2}images\n$/)
    assert.deepEqual(readdirSync(path), ['images'])
    assert.match(purge(path).text, /There is nothing of Alcove/)
  })

  test('gives back the range of addresses that its network took, and no other server’s', async (t) => {
    const ours = prepareDataDirectory(join(scratch, 'networked'))
    const theirs = prepareDataDirectory(join(scratch, 'neighbour'))
    const takeRange = async ({ instance }: { instance: string }) => {
      const pool = await openNetworkPool({ instance, log: silentLog(), spare: 1 })
      await pool.close()
      const { range } = JSON.parse(readFileSync(join(runDirectoryOf(instance), 'network.json'), 'utf8'))
      t.after(async () => {
        await removeNetwork(instance)
        if (claimed().includes(rangeText(range))) await giveUpRange(range)
      })
      return rangeText(range)
    }
    const [our, their] = [await takeRange(ours), await takeRange(theirs)]
    const held = () => [our, their].map((range) => claimed().includes(range))
    assert.deepEqual(held(), [true, true])
    assert.equal(purge(ours.path).status, 0)
    assert.deepEqual(held(), [false, true])
    assert.equal(purge(theirs.path).status, 0)
    assert.deepEqual(held(), [false, false])
  })

  test('takes away what a first start left that was interrupted, also early', () => {
    const path = join(scratch, 'begun')
    mkdirSync(path)
    writeFileSync(markOf(path), '')
    assert.equal(purge(path).status, 0)
    assert.equal(existsSync(path), false)
  })
})
