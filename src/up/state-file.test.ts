import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { findUpState, upStateWriter } from './state-file.ts'

suite('the state file of `up`', () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-state-'))
  after(() => rmSync(directory, { recursive: true, force: true }))

  test('if the disk is full, the state file of `up` keeps its content, and the failed writes are logged once', () => {
    const path = join(directory, 'up.json')
    const said: string[] = []
    const write = upStateWriter(path, (line) => said.push(line))
    const stateAt = (port: number) => ({ pid: 1, startTime: '1', host: '127.0.0.1', port, url: '', programs: [] })
    const fill = () => symlinkSync('/dev/full', `${path}.new`)
    const free = () => unlinkSync(`${path}.new`)

    write(stateAt(1))
    fill()
    for (const port of [2, 3, 4]) write(stateAt(port))
    assert.equal(findUpState(path)?.port, 1)
    assert.equal(said.length, 1)
    assert.match(said[0] ?? '', /cannot write .*up\.json.*ENOSPC/)

    free()
    write(stateAt(5))
    assert.equal(findUpState(path)?.port, 5)

    fill()
    write(stateAt(6))
    assert.equal(said.length, 2)
  })
})
