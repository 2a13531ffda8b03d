import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { suite, test } from 'node:test'

const end = new URL('./end.ts', import.meta.url).href

/** Runs a program that prints, with its standard output on a device that is always full. */
const printsToFullDisk = (more = '') => {
  const program = `const { endWith } = await import('${end}')
    await endWith(async () => { process.stdout.write('answer'); ${more} })`
  const redirected = 'exec "$0" --input-type=module -e "$1" > /dev/full'
  const { status, stderr } = spawnSync('sh', ['-c', redirected, process.execPath, program])
  return { status, said: stderr.toString() }
}

suite('the end of the program', () => {
  test('output that could not be written is said, and is no success', () => {
    const said = 'alcove: The output could not be written: ENOSPC.\n'
    assert.deepEqual(printsToFullDisk(), { status: 74, said })
    assert.deepEqual(printsToFullDisk('process.exitCode = 3'), { status: 3, said })
  })
})
