// The house has walls. An import that goes through one fails here, with the name of both sides.
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { suite, test } from 'node:test'

const root = resolve(import.meta.dirname, '..')

/** What everybody may read: words, errors, and things that know nothing of ours. */
const ground = ['src/wire', 'src/problems.ts', 'src/kit']

/** Each part of the house and what it may reach besides itself. What is missing here may reach nothing. */
const reaches: Record<string, readonly string[]> = {
  bin: ['src/cli', 'src/up', 'src/control', 'src/gate', 'src/runner', ...ground],
  'src/cli': ['src/up', 'src/doctor', 'src/runner', ...ground],
  'src/up': ['src/doctor', 'src/postgres', ...ground],
  'src/doctor': ground,
  'src/control': ['src/http', 'src/postgres/url.ts', ...ground],
  'src/gate': ['src/toolbox', 'src/http', ...ground],
  // What it asks of the agents of its sandboxes, and nothing that gives a caller's bytes a meaning.
  'src/runner': ['src/toolbox/agent', ...ground],
  'src/toolbox': ['src/http', ...ground],
  'src/postgres': ground,
  'src/http': ground,
  'src/kit': [],
  'src/problems.ts': [],
  'src/wire': [],
}

type Import = { file: string; target: string }

/** The file that an import of ours names; packages and Node's own modules are not ours. */
const targetOf = (file: string, specifier: string): string | undefined => {
  if (specifier.startsWith('#')) return specifier.slice(1)
  if (specifier.startsWith('.')) return relative(root, resolve(root, dirname(file), specifier))
  return undefined
}

const specifiersOf = (file: string): string[] => {
  const text = readFileSync(join(root, file), 'utf8')
  const forms = /^(?:import|export)\b[^'"]*\bfrom\s*'([^']+)'|^import\s*'([^']+)'|\bimport\(\s*'([^']+)'/gm
  return [...text.matchAll(forms)].map(([, named, bare, lazy]) => (named ?? bare ?? lazy)!)
}

const isTest = (file: string) => /\.test\.ts$|\/testing\//.test(file)

const sources = globSync('{bin,src}/**/*.ts', { cwd: root }).sort()
const programs = sources.filter((file) => !isTest(file))

const imports: Import[] = programs.flatMap((file) =>
  specifiersOf(file).flatMap((specifier) => {
    const target = targetOf(file, specifier)
    return target === undefined ? [] : [{ file, target }]
  }),
)

const partOf = (file: string) => (file.startsWith('bin/') ? 'bin' : file.split('/').slice(0, 2).join('/'))

const isBelow = (file: string, place: string) => file === place || file.startsWith(`${place}/`)

const say = ({ file, target }: Import) => `${file} → ${target}`

suite('walls', () => {
  test('there are imports to look at, and each names a file that exists', () => {
    assert.ok(imports.length > 100)
    assert.deepEqual(imports.filter(({ target }) => !existsSync(join(root, target))).map(say), [])
  })

  test('every part of the house stands in the table of this test', () => {
    assert.deepEqual(
      [...new Set(programs.map(partOf))].filter((part) => reaches[part] === undefined),
      [],
    )
  })

  test('imports go bin → program → http → kit; all may read wire and problems', () => {
    const through = imports.filter(({ file, target }) => {
      const part = partOf(file)
      const allowed = [part, ...(reaches[part] ?? [])]
      return !target.endsWith('.json') && !allowed.some((place) => isBelow(target, place))
    })
    assert.deepEqual(through.map(say), [])
  })

  test('a program imports no test, and nothing that only tests use', () => {
    const through = imports.filter(({ target }) => isTest(target) || target.startsWith('test/'))
    assert.deepEqual(through.map(say), [])
  })

  test('what only tests use lies in a folder that says so', () => {
    const imported = new Set(imports.map(({ target }) => target))
    assert.deepEqual(
      programs.filter((file) => isBelow(file, 'src') && !imported.has(file)),
      ['src/runner/network/dns/process.ts'], // a program, which the runner starts
    )
  })

  test('rooms of control meet through their services and verbs, never through another room’s store', () => {
    const roomOf = (file: string) => /^src\/control\/([^/]+)\//.exec(file)?.[1]
    const through = imports.filter(({ file, target }) => {
      const [here, there] = [roomOf(file), roomOf(target)]
      return here !== undefined && target.endsWith('/store.ts') && here !== there
    })
    assert.deepEqual(through.map(say), [])
  })

  test('only storage and PostgreSQL’s own folder know the driver', () => {
    const knowing = programs.filter((file) => specifiersOf(file).includes('postgres'))
    assert.deepEqual(
      knowing.filter((file) => !isBelow(file, 'src/postgres') && !isBelow(file, 'src/control/storage')),
      [],
    )
  })

  test('OpenTelemetry is known to the files of telemetry only, and what loads it is loaded by open.ts', () => {
    const isOpenTelemetry = (specifier: string) => specifier.startsWith('@opentelemetry/')
    const knowing = programs.filter((file) => specifiersOf(file).some(isOpenTelemetry))
    assert.ok(knowing.length > 0)
    assert.deepEqual(
      knowing.filter((file) => !isBelow(file, 'src/kit/telemetry')),
      [],
    )
    const loading = imports.filter(({ file, target }) => knowing.includes(target) && !knowing.includes(file))
    assert.deepEqual(loading.map(say), ['src/kit/telemetry/open.ts → src/kit/telemetry/sdk.ts'])
  })

  test('the environment is read where a program’s settings are, and nowhere else', () => {
    const reading = programs.filter((file) => /\bprocess\s*\.\s*env\b/.test(readFileSync(join(root, file), 'utf8')))
    const allowed = [
      'src/kit/log.ts', // the level of every program's log
      'src/cli/command-line.ts', // hands it to the settings of `up`
      'src/up/system-packages.ts', // hands it on to the package manager
    ]
    assert.deepEqual(
      reading.filter((file) => !file.startsWith('bin/') && !file.endsWith('/config.ts') && !allowed.includes(file)),
      [],
    )
  })
})
