// Language servers in real sandboxes, through the public SDK. pylsp is in the default image. TypeScript comes from this checkout's
// node_modules instead of the npm registry.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const nodeModules = resolve(import.meta.dirname, '../../node_modules')

suite('createLspServer of the SDK', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  before(async () => {
    alcove = await platform()
    daytona = connectTo(alcove)
    sandbox = await daytona.create()
  })
  after(async () => {
    await sandbox?.delete(60, true)
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const run = async (command: string) => {
    const { exitCode, result } = await sandbox.process.executeCommand(command, undefined, undefined, 60)
    assert.equal(exitCode, 0, `${command}: ${result}`)
    return result.trim()
  }
  const upload = (path: string, text: string) => sandbox.fs.uploadFile(Buffer.from(text), path)

  /**
   * Installs TypeScript in the sandbox as the default user: the npm package, and the native program for this machine's
   * processor.
   */
  const installTypeScript = async () => {
    const native = `@typescript/typescript-linux-${process.arch}`
    const tar = execFileSync('tar', ['-C', nodeModules, '-cz', 'typescript', native], { maxBuffer: 256 * 1024 * 1024 })
    await sandbox.fs.uploadFile(tar, 'typescript.tgz')
    await run('mkdir -p .local/lib/node_modules .local/bin && tar -C .local/lib/node_modules -xzf typescript.tgz')
    await run('ln -s ../lib/node_modules/typescript/bin/tsc .local/bin/tsc')
  }

  test('the Python language server completes code and lists symbols in files with relative or absolute paths', async () => {
    await run('mkdir -p "my project"')
    await upload('my project/shapes.py', 'class Shape:\n    def area(self): return 1\n\nShape().ar\n')
    const lsp = await sandbox.createLspServer('python', 'my project')
    await assert.rejects(lsp.completions('my project/shapes.py', { line: 3, character: 10 }), {
      name: 'DaytonaLspServerNotInitializedError',
    })
    await lsp.start()
    const path = `${await run('pwd')}/my project/shapes.py`
    for (const name of ['my project/shapes.py', path]) {
      await lsp.didOpen(name)
      const { items, isIncomplete } = await lsp.completions(name, { line: 3, character: 10 })
      assert.deepEqual([isIncomplete, items.map(({ label }) => label)], [false, ['area()']])
      const symbols = await lsp.documentSymbols(name)
      assert.deepEqual(
        symbols.map(({ name: symbol, kind }) => [symbol, kind]),
        [
          ['Shape', 5],
          ['area', 6],
        ],
      )
      assert.equal(symbols[0]?.location.uri, `file://${path.replace(' ', '%20')}`)
    }
    await assert.rejects(lsp.workspaceSymbols('Shape'), /does not offer workspace\/symbol/)
    await lsp.didClose(path)
    await lsp.stop()
    await until('the server has ended', async () => (await run('pgrep -c pylsp || true')) === '0')
  })

  test('if a sandbox lacks TypeScript, the language server’s error names a command that installs TypeScript', async () => {
    await run('mkdir -p web')
    await upload('web/app.ts', 'export class Greeter { greet() { return 1 } }\nconst g = new Greeter()\ng.gr\n')
    await upload('web/app.js', 'const list = [1]\nlist.ma\n')
    const typescript = await sandbox.createLspServer('typescript', 'web')
    await assert.rejects(typescript.start(), /no language server for typescript\. .*npm install -g typescript/)
    await installTypeScript()
    await typescript.start()
    await typescript.didOpen('web/app.ts')
    const labels = async (lsp: typeof typescript, path: string, line: number, character: number) =>
      (await lsp.completions(path, { line, character })).items.map(({ label }) => label)
    assert.deepEqual(await labels(typescript, 'web/app.ts', 2, 4), ['greet'])
    const names = (symbols: { name: string }[]) => symbols.map(({ name }) => name)
    assert.deepEqual(names(await typescript.documentSymbols('web/app.ts')).slice(0, 2), ['Greeter', 'greet'])
    assert.ok(names(await typescript.workspaceSymbols('Greet')).includes('Greeter'))
    const javascript = await sandbox.createLspServer('javascript', 'web')
    await javascript.start()
    await javascript.didOpen('web/app.js')
    assert.ok((await labels(javascript, 'web/app.js', 1, 7)).includes('map'))
    await javascript.stop()
  })

  test('a language server ends when its sandbox stops, and can be started again when the sandbox runs again', async () => {
    const lsp = await sandbox.createLspServer('typescript', 'web')
    await lsp.start()
    await sandbox.stop()
    await sandbox.start()
    await assert.rejects(lsp.documentSymbols('web/app.ts'), { name: 'DaytonaLspServerNotInitializedError' })
    await lsp.start()
    await lsp.didOpen('web/app.ts')
    assert.equal((await lsp.documentSymbols('web/app.ts'))[0]?.name, 'Greeter')
    await lsp.stop()
  })
})
