// Runs the examples of the README and of the guides exactly as they are printed.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { addressedTo, blocksOf, checkout, makeDesk, readPage, runProgram } from './guide.ts'
import { type Platform, platform } from './harness.ts'

const readme = readPage('README.md')
const guide = readPage('docs/guides/first-agent.md')
const sshGuide = readPage('docs/guides/ssh.md')
const dayTwo = readPage('docs/guides/day-two.md')

suite('the README', () => {
  let server: Platform
  const desk = makeDesk()
  before(async () => {
    server = await platform()
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
  })

  const here = (text: string) => addressedTo(server, text)

  test('the README’s curl lines create a sandbox and run a command in it', async () => {
    const [create, execute, ...more] =
      blocksOf(readme, 'sh')
        .find((text) => text.startsWith('curl'))
        ?.trim()
        .split('\n') ?? []
    assert.ok(create && execute && more.length === 0)
    const answerTo = async (line: string) => {
      const { code, output } = await runProgram('sh', ['-c', `${here(line)} --silent`], { cwd: checkout })
      assert.equal(code, 0, output)
      return JSON.parse(output)
    }
    const sandbox = await answerTo(create)
    assert.equal(sandbox.state, 'started', JSON.stringify(sandbox))
    const { exitCode, result } = await answerTo(execute.replace('/ID/', `/${sandbox.id}/`))
    assert.deepEqual([exitCode, result.split(' ')[0]], [0, 'Linux'])
    assert.equal(sandbox.autoStopInterval, Number(/stops after (\d+) minutes/.exec(readme)?.[1]))
    await server.api('DELETE', `/sandbox/${sandbox.id}`)
  })

  test('after the README’s command that sets the API key, the README’s SDK script runs to its end unchanged', async () => {
    const [script] = blocksOf(readme, 'js')
    assert.ok(script)
    const [setKey] = /(?<=`)export [^`]+(?=`)/.exec(readme) ?? []
    assert.ok(setKey)
    const file = join(desk, 'readme.mjs')
    writeFileSync(file, here(script))
    const line = `${here(setKey)} && cd '${desk}' && exec '${process.execPath}' '${file}'`
    const { code, output } = await runProgram('sh', ['-c', line], { cwd: checkout })
    assert.equal(code, 0, output)
    assert.match(output, /^Linux .*\n\n?42\n/m)
  })

  test('the code of the first-agent guide, joined to one file, prints the output that the guide shows', async () => {
    const file = join(desk, 'agent.mjs')
    // Only a build writes the log that the guide shows. A random text in the image makes the server build it, instead of using the
    // image of an earlier test run.
    const words = `made once, ${randomUUID()}`
    writeFileSync(file, blocksOf(guide, 'js').join('\n').replace('made once', words))
    const env = { DAYTONA_API_URL: `${server.url}/api`, DAYTONA_API_KEY: server.key }
    const { code, output } = await runProgram(process.execPath, [file], { cwd: desk, env })
    assert.equal(code, 0, output)
    const shown = blocksOf(guide, 'text').map((lines) => lines.replaceAll('made once', words))
    assert.ok(shown.length >= 5)
    let from = 0
    for (const lines of shown) {
      const at = output.indexOf(lines, from)
      assert.notEqual(at, -1, `after ${from} characters there is no ${JSON.stringify(lines)} in:\n${output}`)
      from = at + lines.length
    }
  })

  test('the commands of the second-day guide succeed, and set limits for an organization', async () => {
    const [lines] = blocksOf(dayTwo, 'sh')
    assert.ok(lines)
    const made = await server.api('POST', '/organizations', { name: 'tenant', defaultRegionId: 'local' })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const { code, output } = await runProgram('sh', ['-ec', here(lines)], {
      cwd: checkout,
      env: { ORG: String(made.body['id']) },
    })
    assert.equal(code, 0, output)
  })

  test('the commands of the SSH guide, joined to one script, copy files and revoke the token', async () => {
    const made = await server.api('POST', '/sandbox', {})
    const id = String(made.body['id'])
    const script = here(blocksOf(sshGuide, 'sh').join('\n')).replaceAll('./alcove', join(checkout, 'alcove'))
    const { code, output } = await runProgram('sh', ['-ec', script], { cwd: desk, env: { ID: id } })
    assert.equal(code, 0, output)
    assert.match(output, /hello from daytona/)
    assert.equal(readFileSync(join(desk, 'fetched'), 'utf8'), readFileSync('/etc/hostname', 'utf8'))
    assert.equal(JSON.parse(readFileSync(join(desk, 'revoked'), 'utf8')).id, id)
    await server.api('DELETE', `/sandbox/${id}`)
  })

  test('examples/first-sandbox.mjs runs unchanged', async () => {
    const env = { DAYTONA_API_URL: `${server.url}/api`, DAYTONA_API_KEY: server.key }
    const { code, output } = await runProgram(process.execPath, ['examples/first-sandbox.mjs'], { cwd: checkout, env })
    assert.equal(code, 0, output)
    assert.match(output, /^hello from \S+\n5050\n$/)
  })

  test('examples/toolbox.mjs runs unchanged', async () => {
    const env = { DAYTONA_API_URL: `${server.url}/api`, DAYTONA_API_KEY: server.key }
    const { code, output } = await runProgram(process.execPath, ['examples/toolbox.mjs'], { cwd: checkout, env })
    assert.equal(code, 0, output)
    assert.deepEqual(
      output.match(/^\w+(?=:)/gm),
      ['files', 'sessions', 'terminals', 'interpreter', 'git', 'preview'],
      output,
    )
  })

  test('all checks of examples/first-day.mjs print `ok`', async () => {
    const env = { DAYTONA_API_URL: `${server.url}/api`, DAYTONA_API_KEY: server.key }
    const { code, output } = await runProgram(process.execPath, ['examples/first-day.mjs'], { cwd: checkout, env })
    assert.equal(code, 0, output)
    assert.ok((output.match(/^ok /gm) ?? []).length >= 28, output)
  })

  test('every command that the README names exists', async () => {
    const { code, output } = await runProgram(join(checkout, 'alcove'), ['--help'], { cwd: desk })
    assert.equal(code, 0, output)
    const named = [...readme.matchAll(/^\| `\.\/alcove (\w+)`/gm)].map(([, name]) => name ?? '')
    assert.ok(named.length >= 7)
    for (const name of named) assert.match(output, new RegExp(`^ {2}${name}\\b`, 'm'))
  })
})
