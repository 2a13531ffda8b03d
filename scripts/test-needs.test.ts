import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { suite, test } from 'node:test'
import { needsOf, reachableFrom } from './test-needs.ts'

const root = resolve(import.meta.dirname, '..')

/** Lists the files of this checkout that Node loads when it runs a file. */
const loadedBy = (file: string): string[] => {
  const script = `
    import { registerHooks } from 'node:module'
    import { writeSync } from 'node:fs'
    const start = import.meta.resolve('file://${root}/')
    registerHooks({
      load: (url, context, next) => {
        if (url.startsWith(start) && !url.includes('/node_modules/')) writeSync(3, url.slice(start.length) + '\\n')
        return next(url, context)
      },
    })
    await import(start + ${JSON.stringify(file)})
    process.exit()`
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { output, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: root,
    env,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  })
  assert.equal(status, 0)
  return (output[3] as unknown as string).split('\n').filter(Boolean)
}

suite('what a test file needs', () => {
  test('`needsOf` says, from a test file’s imports, whether the file needs a database or starts programs', () => {
    assert.deepEqual([...needsOf('src/kit/budget.test.ts')], [])
    assert.deepEqual([...needsOf('src/control/regions/routes.test.ts')].sort(), ['database', 'programs'])
    assert.deepEqual([...needsOf('scripts/test-file.test.ts')], ['programs'])
  })

  for (const file of ['src/kit/budget.test.ts', 'src/control/main.test.ts', 'src/gate/upgrade.test.ts']) {
    test(`reachableFrom finds every module that Node loads for a test file: ${file}`, () => {
      const reached = reachableFrom(file)
      const loaded = loadedBy(file)
      assert.ok(loaded.includes(file))
      assert.deepEqual(
        loaded.filter((module) => !reached.has(module)),
        [],
      )
    })
  }

  test('`reachableFrom` does not follow imports of types, because Node removes them', () => {
    // The file `test-report.ts` imports only types from a file that starts programs.
    assert.deepEqual([...reachableFrom('scripts/test-report.ts')], ['scripts/test-report.ts'])
  })
})
