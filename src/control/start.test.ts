import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { suite, test } from 'node:test'

/** A program that imports the main module of control and prints the npm packages that were loaded. */
const program = `
  import { registerHooks } from 'node:module'
  const loaded = new Set()
  registerHooks({
    load: (url, context, next) => {
      loaded.add(/.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1])
      return next(url, context)
    },
  })
  await import(process.argv[1])
  console.log([...loaded].filter(Boolean).join('\\n'))`

suite('the start of control', () => {
  test('control does not load `oidc-provider` or `nodemailer` at its start', () => {
    const args = ['--input-type=module', '--eval', program, import.meta.resolve('./main.ts')]
    const loaded = execFileSync(process.execPath, args, { encoding: 'utf8' }).trim().split('\n')
    // Control always loads `fastify`, so this check shows that the list `loaded` is filled. With an empty list, the next check
    // could never fail.
    assert.ok(loaded.includes('fastify'))
    const forSome = ['oidc-provider', 'nodemailer']
    assert.deepEqual(
      forSome.filter((name) => loaded.includes(name)),
      [],
    )
  })
})
