// Runs the program of the guide for people who come from Daytona. The program copies a sandbox from one server to another. In this
// test, one Alcove server plays both parts.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { boxOf, createBox } from './box.ts'
import { addressedTo, blocksOf, makeDesk, programsOf, readPage, runProgram } from './guide.ts'
import { type Platform, platform } from './harness.ts'

const page = readPage('docs/guides/from-daytona.md')

suite('the guide for people who come from Daytona', () => {
  let server: Platform
  const desk = makeDesk()
  before(async () => {
    server = await platform()
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
  })

  test('move.mjs of the guide copies home directory, variables and labels of a sandbox to a new sandbox', async () => {
    await using source = await createBox(server, { env: { STAGE: 'test' }, labels: { purpose: 'moving' } })
    await source.run('mkdir -p work && echo kept > work/note && ln -s note work/link && chmod 600 work/note')
    await source.run('echo hidden > .settings')

    writeFileSync(join(desk, 'move.mjs'), programsOf(page).get('move.mjs') ?? '')
    const [setVariables, move] = blocksOf(page, 'sh')
    const script = `${addressedTo(server, `${setVariables}`)}\n${move}`
      .replace('https://app.daytona.io/api', `${server.url}/api`)
      .replace('dtn_…', server.key)
      .replace('ID_OF_THE_FORMER_SANDBOX', source.id)
    const env = { PATH: `${join(process.execPath, '..')}:${process.env['PATH']}` }
    const { code, output } = await runProgram('sh', ['-ec', script], { cwd: desk, env })
    assert.equal(code, 0, output)
    const [, id = ''] = /is now (\S+)$/m.exec(output) ?? []
    assert.notEqual(id, source.id)

    const { body } = await server.api('GET', `/sandbox/${id}`)
    await using target = boxOf(server, body)
    assert.equal((body['labels'] as Record<string, string>)['purpose'], 'moving')
    const found = await target.run('cat work/link .settings; stat -c "%a %U" work/note; echo $STAGE; ls /tmp')
    assert.equal(found, 'kept\nhidden\n600 daytona\ntest')
  })

  test('a create with a target of Daytona’s public service, such as `us`, answers 404, as the guide says', async () => {
    const { status, body } = await server.api('POST', '/sandbox', { target: 'us' })
    assert.deepEqual([status, /no region "us"/.test(String(body['message']))], [404, true])
    assert.match(page, /There is no `us` and no `eu` here \(404\)/)
  })
})
