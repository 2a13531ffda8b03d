// Tests the list of sandboxes, and waiting for a state, with a server whose answers the test chooses.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { Api } from '../api.ts'
import { exitCodes, Failure } from '../failure.ts'
import { createKey, listKeys } from '../keys/keys.ts'
import { asTable } from '../print/table.ts'
import { findSandboxes } from './list.ts'
import { getSandbox, type Sandbox, toolboxOf } from './sandbox.ts'
import { settle } from './settle.ts'

let answers: object[] = []
let asked: string[] = []
let api: Api
const server = createServer((request, response) => {
  asked.push(`${request.method} ${request.url}`)
  response.end(JSON.stringify(answers.shift() ?? {}))
})

before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`
  api = new Api({ apiUrl, token: async () => 'key' })
})
after(() => {
  server.closeAllConnections()
  server.close()
})

const sandbox = (state: string, errorReason?: string): Sandbox => ({
  ...{ id: 'id', name: 'box', state, cpu: 1, memory: 1, disk: 1, toolboxProxyUrl: '' },
  ...(errorReason === undefined ? {} : { errorReason }),
})

suite('sandboxes of a server', () => {
  test('`alcove` gets the sandboxes of all pages of a list, and sends the filters with each request', async () => {
    answers = [
      { items: [sandbox('started'), sandbox('stopped')], nextCursor: 'a b' },
      { items: [sandbox('paused')], nextCursor: null },
    ]
    asked = []
    const found = await findSandboxes(api, { state: ['started', 'paused'], label: ['a=b=c'] })
    assert.deepEqual(
      found.map(({ state }) => state),
      ['started', 'stopped', 'paused'],
    )
    const filters = 'states=started%2Cpaused&labels=%7B%22a%22%3A%22b%3Dc%22%7D'
    assert.deepEqual(asked, [
      `GET /api/sandbox?limit=200&${filters}`,
      `GET /api/sandbox?limit=200&cursor=a+b&${filters}`,
    ])
  })

  test('if another server than Alcove answers, the client’s error says so in one sentence', async () => {
    const isFailure = (error: unknown) => error instanceof Failure && /Is it an Alcove server\?$/.test(error.message)
    for (const answer of [{}, [], { items: 5 }, { id: 1, name: {}, state: [] }]) {
      answers = [answer, answer, {}, {}]
      await assert.rejects(findSandboxes(api), isFailure)
      await assert.rejects(getSandbox(api, 'box'), isFailure)
      await assert.rejects(settle(api, answer as unknown as Sandbox, ['started']), isFailure)
      await assert.rejects(listKeys(api, {}), isFailure)
      await assert.rejects(createKey(api, 'key', {}), isFailure)
    }
    for (const toolboxProxyUrl of [undefined, '', 'nonsense', 'file:///etc', 'https://'])
      assert.throws(() => toolboxOf({ ...sandbox('started'), toolboxProxyUrl } as Sandbox), Failure)
  })

  test('a list of 150,000 sandboxes is fetched and printed as a table', async () => {
    const items = Array.from({ length: 150_000 }, () => sandbox('started'))
    answers = [{ items, nextCursor: null }]
    assert.equal((await findSandboxes(api)).length, items.length)
    const rows = items.map(({ id, state }) => [id, state])
    assert.match(asTable(['ID', 'STATE'], rows), /^ID {2}STATE\nid {2}started\n/)
  })

  test('`settle` asks the server until the sandbox has reached the wanted state', async () => {
    answers = [sandbox('creating'), sandbox('started')]
    asked = []
    assert.equal((await settle(api, sandbox('pending_build'), ['started'])).state, 'started')
    assert.deepEqual(asked, ['GET /api/sandbox/id', 'GET /api/sandbox/id'])
  })

  test('`settle` throws if the sandbox fails or stays in a state that is not wanted', async () => {
    const isFailure = (sentence: RegExp, exitCode: number) => (error: unknown) =>
      error instanceof Failure && sentence.test(error.message) && error.exitCode === exitCode
    for (const state of ['error', 'build_failed']) {
      const failed = isFailure(/^The sandbox box has failed: no \\u\{1b\} room$/, exitCodes.serverError)
      await assert.rejects(settle(api, sandbox(state, 'no \u001b room'), ['started']), failed)
    }
    const other = isFailure(/^The sandbox box is archived, not started\.$/, exitCodes.refused)
    await assert.rejects(settle(api, sandbox('archived'), ['started']), other)
  })
})
