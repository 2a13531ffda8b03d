// Tests code that writes files: records one run of the code, and computes which files a power cut at each moment would leave.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Recorder } from './recorder.ts'
import { cutsOf, layOut } from './remains.ts'

/**
 * The result of one power cut. `told`: how many times the code had called `mark` before the cut. `directory`: the directory with
 * the files that are left. `after`: the moment of the cut, for messages.
 */
export type Left = { told: number; directory: string; after: string }

/**
 * Records the file operations of `act`. Then calls `look` with each possible result of a power cut. `act` must call `mark` each
 * time that the tested code reports finished work. `directories` are made before `act` runs.
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
