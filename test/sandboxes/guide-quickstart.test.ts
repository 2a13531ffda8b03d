// Runs the programs of the quickstart guide as they are printed in the guide, with the environment variables that the guide sets.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { addressedTo, blocksOf, makeDesk, programsOf, readPage, runProgram } from './guide.ts'
import { type Platform, platform } from './harness.ts'

const page = readPage('docs/guides/quickstart.md')
const programs = programsOf(page)
const commands = { 'quickstart.ts': process.execPath, 'quickstart.py': 'python3', 'quickstart.sh': 'sh -e' }

suite('the quickstart', () => {
  let server: Platform
  const desk = makeDesk()
  before(async () => {
    server = await platform()
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
  })

  for (const [name, command] of Object.entries(commands))
    test(`the program ${name} of the quickstart prints the output that the quickstart shows below the program`, async () => {
      const [setVariables] = blocksOf(page, 'sh')
      const program = programs.get(name)
      assert.ok(setVariables && program)
      writeFileSync(join(desk, name), program)
      const script = `${addressedTo(server, setVariables)}\nexec ${command} ${name}`
      const { code, output } = await runProgram('sh', ['-ec', script], { cwd: desk })
      assert.equal(code, 0, output)
      const [shown] = blocksOf(page.slice(page.indexOf(program) + program.length), 'text')
      assert.equal(output, shown)
    })

  test('the tests of this file run every program of the quickstart', () => {
    assert.deepEqual([...programs.keys()].sort(), Object.keys(commands).sort())
  })
})
