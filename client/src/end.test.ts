import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { suite, test } from 'node:test'

const end = new URL('./end.ts', import.meta.url).href

/** Runs a program whose standard output is `/dev/full`, a device that refuses all output as a full disk does. */
const printsToFullDisk = (more = '') => {
  const program = `const { endWith } = await import('${end}')
    await endWith(async () => { process.stdout.write('answer'); ${more} })`
  const redirected = 'exec "$0" --input-type=module -e "$1" > /dev/full'
  const { status, stderr } = spawnSync('sh', ['-c', redirected, process.execPath, program])
  return { status, said: stderr.toString() }
}

suite('output that cannot be written', () => {
  test('if `alcove` cannot write its output, it shows an error and does not exit with code 0', () => {
    const said = 'alcove: The output could not be written: ENOSPC.\n'
    assert.deepEqual(printsToFullDisk(), { status: 74, said })
    assert.deepEqual(printsToFullDisk('process.exitCode = 3'), { status: 3, said })
  })
})
