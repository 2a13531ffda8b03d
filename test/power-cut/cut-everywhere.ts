// For tests of code that writes files. Records one run of this code, and computes for each moment of the run which files would be
// on the disk after a power cut.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Recorder } from './recorder.ts'
import { cutsOf, layOut } from './remains.ts'

/**
 * The result of one power cut. `told`: how many times the tested code had called `mark` before the cut, to say that work is
 * done. `directory`: contains the files that are left. `after`: describes the moment of the cut, for messages.
 */
export type Left = { told: number; directory: string; after: string }

/**
 * Runs `act` and records what it does. Then calls `look` with each possible result of a power cut. `act` must call `mark` at the
 * moment at which it reports that work is done. `directories` exist on the disk before `act` begins.
 */
export const cutEverywhere = async (
  act: (directory: string, mark: () => void) => unknown,
  look: (left: Left) => unknown,
  directories: readonly string[] = [],
): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), 'alcove-cut-'))
  try {
    const place = join(root, 'place')
    for (const path of ['', ...directories]) mkdirSync(join(place, path))
    await using recorder = await Recorder.attach()
    let marked = 0
    await act(place, () => {
      recorder.mark()
      marked += 1
    })
    const operations = await recorder.stop()
    let last = 0
    for (const { told, remains, after } of cutsOf(operations, place)) {
      const directory = join(root, 'left')
      for (const path of ['', ...directories]) mkdirSync(join(directory, path))
      layOut(remains, directory)
      await look({ told, directory, after })
      rmSync(directory, { recursive: true })
      last = told
    }
    assert.ok(marked > 0)
    assert.equal(last, marked, 'every mark was recorded')
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}
