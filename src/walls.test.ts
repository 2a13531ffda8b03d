// Fails when an import crosses a wall of the house (ARCHITECTURE.md). The table is the rule; what it does not name is forbidden.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { suite, test } from 'node:test'

const root = resolve(import.meta.dirname, '..')

/** Everybody may also read `wire`, `problems.ts` and the package's own description. */
const mayImport: Record<string, readonly string[]> = {
  bin: ['cli', 'up', 'control', 'proxy', 'runner', 'toolbox', 'http', 'kit'],
  cli: ['up', 'doctor', 'runner', 'kit'],
  up: ['postgres', 'doctor', 'kit'],
  control: ['postgres', 'http', 'kit'],
  proxy: ['http', 'kit'],
  runner: ['toolbox', 'http', 'kit'],
  toolbox: ['http', 'kit'],
  postgres: ['kit'],
  doctor: ['kit'],
  http: ['kit'],
  kit: [],
  wire: [],
  'problems.ts': [],
}

const forAll = ['wire', 'problems.ts', 'package.json']

/** The part of the house that a file belongs to: `src/control/app.ts` to `control`, `bin/up.ts` to `bin`. */
const roomOf = (file: string) => {
  const [top = '', second = ''] = file.split('/')
  return top === 'src' ? second : top
}

const specifiers = /(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g

const importsOf = (file: string): string[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(specifiers)]
    .map(([, specifier]) => specifier ?? '')
    .filter((specifier) => specifier.startsWith('#') || specifier.startsWith('.'))
    .map((specifier) =>
      specifier.startsWith('#') ? specifier.slice(1) : relative(root, resolve(root, dirname(file), specifier)),
    )

suite('the walls', () => {
  // Tests may look over a wall, to check both sides together.
  const files = globSync('{bin,src}/**/*.ts', { cwd: root }).filter((file) => !/\.test\.ts$|\/testing\//.test(file))

  test('every file belongs to a room with a rule', () => {
    assert.ok(files.length > 50)
    assert.deepEqual(
      [...new Set(files.map(roomOf))].filter((room) => !(room in mayImport)),
      [],
    )
  })

  test('no import crosses a wall', () => {
    const crossings = files.flatMap((file) => {
      const room = roomOf(file)
      const allowed = [room, ...(mayImport[room] ?? []), ...(room === 'wire' ? [] : forAll)]
      return importsOf(file)
        .filter((target) => !allowed.includes(roomOf(target)))
        .map((target) => `${file} imports ${target}`)
    })
    assert.deepEqual(crossings, [])
  })

  test('wire and problems import nothing of ours', () => {
    const inner = files.filter((file) => ['wire', 'problems.ts'].includes(roomOf(file)))
    for (const file of inner) {
      assert.deepEqual(
        importsOf(file).filter((target) => roomOf(target) !== roomOf(file)),
        [],
        file,
      )
    }
  })

  test('the environment is read in config.ts only', () => {
    const readers = files.filter((file) => readFileSync(join(root, file), 'utf8').includes('process.env'))
    const allowed = (file: string) =>
      // The programs and the command line hand it to their config; the log level has a default of its own.
      file.startsWith('bin/') ||
      /\/config\.ts$/.test(file) ||
      ['src/kit/log.ts', 'src/cli/command-line.ts'].includes(file)
    // apt-get and a test's own child get the whole environment (proxies, locale); it is passed on, not read.
    const passers = ['src/up/system-packages.ts', 'src/runner/network/private-host.ts']
    assert.deepEqual(
      readers.filter((file) => !allowed(file) && !passers.includes(file)),
      [],
    )
  })
})
