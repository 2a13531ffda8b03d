// Tests which sandbox `alcove run` deletes if the answer to its create is lost. The test's server answers no create: it closes the
// connection.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, suite, test } from 'node:test'
import { Api } from '../api.ts'
import { exitCodes, Failure } from '../failure.ts'
import { withSandbox } from './temporary.ts'

type Asked = { labels: Record<string, string> }

let asked: string[] = []
/** Returns what the test's server answers when the client asks for the sandbox by its name. */
let found: (made: Asked) => object = () => ({})
let made: Asked = { labels: {} }

const readJson = async (request: IncomingMessage): Promise<Asked> => {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return JSON.parse(Buffer.concat(pieces).toString()) as Asked
}

const server = createServer(async (request, response) => {
  asked.push(`${request.method} ${request.url}`)
  if (request.method === 'POST') {
    made = await readJson(request)
    response.destroy()
  } else response.end(request.method === 'GET' ? JSON.stringify(found(made)) : '')
})

before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
beforeEach(() => {
  asked = []
})
after(() => {
  server.closeAllConnections()
  server.close()
})

const runNamed = async (token: () => Promise<string>) => {
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`
  const api = new Api({ apiUrl, token })
  await withSandbox({ api, env: {} }, { name: 'box' }, async () => assert.fail('there is no sandbox to use'))
}
const failsWith = (exitCode: number) => (error: unknown) => error instanceof Failure && error.exitCode === exitCode

suite('the sandbox of `alcove run`', () => {
  test('if the answer to its create request is lost, `alcove run` still finds and deletes the sandbox', async () => {
    found = ({ labels }) => ({ id: 'made', labels })
    await assert.rejects(
      runNamed(async () => 'key'),
      failsWith(exitCodes.unreachable),
    )
    assert.deepEqual(asked, ['POST /api/sandbox', 'GET /api/sandbox/box', 'DELETE /api/sandbox/made'])
  })

  test('if the answer to its create request is lost, `alcove run` never deletes another sandbox of that name', async () => {
    for (const labels of [{}, undefined, { 'alcove-run': 'of another run' }]) {
      asked = []
      found = () => ({ id: 'precious', labels })
      await assert.rejects(
        runNamed(async () => 'key'),
        failsWith(exitCodes.unreachable),
      )
      assert.deepEqual(asked, ['POST /api/sandbox', 'GET /api/sandbox/box'])
    }
  })

  test('`alcove run` asks for no sandbox if the user’s session has expired', async () => {
    const ended = async () => {
      throw new Failure('Your session has ended.', exitCodes.notAllowed)
    }
    await assert.rejects(runNamed(ended), failsWith(exitCodes.notAllowed))
    assert.deepEqual(asked, [])
  })
})
