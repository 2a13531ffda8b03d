// Tests how much a browser downloads for the dashboard. The test bundles the present sources and adds up gzip sizes.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { needsRoot } from '#test/needs-root.ts'
import { ensureDashboard, findDashboardPlace } from './ensure.ts'

type Chunk = { file: string; imports?: string[]; css?: string[] }

suite('the sizes of the dashboard', { skip: needsRoot }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-budgets-'))
  let directory: string
  let chunks: Record<string, Chunk>

  before(async () => {
    const place = findDashboardPlace(scratch)
    assert.equal(await ensureDashboard(place, () => {}), undefined)
    directory = place.directory
    chunks = JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8')) as Record<string, Chunk>
  })
  after(() => rmSync(scratch, { recursive: true, force: true }))

  /** Lists the files that a browser must load before it can run a chunk (a file of the bundle), including the chunk itself. */
  const filesOf = (name: string, found = new Set<string>()): Set<string> => {
    const chunk = chunks[name]
    assert.ok(chunk, `no chunk ${name}`)
    if (found.has(chunk.file)) return found
    for (const file of [chunk.file, ...(chunk.css ?? [])]) found.add(file)
    for (const next of chunk.imports ?? []) filesOf(next, found)
    return found
  }

  const kilobytesOf = (files: Iterable<string>): number =>
    [...files].reduce((sum, file) => sum + gzipSync(readFileSync(join(directory, file))).length, 0) / 1000

  const listOfSandboxes = () => new Set([...filesOf('index.html'), ...filesOf('src/pages/sandboxes/page.tsx')])

  test('to show the dashboard’s first page, the list of sandboxes, a browser downloads at most 230 kB', () => {
    const size = kilobytesOf(listOfSandboxes())
    assert.ok(size <= 230, `${size} kB`)
  })

  for (const [what, source, most] of [
    ['terminal', 'src/pages/sandbox/terminal/emulator.ts', 125],
    ['editor', 'src/pages/sandbox/files/editor.ts', 190],
  ] as const)
    test(`a browser with the list of sandboxes downloads at most ${most} kB more to show the ${what}`, () => {
      const size = kilobytesOf(filesOf(source).difference(listOfSandboxes()))
      assert.ok(size <= most, `${size} kB`)
    })
})
