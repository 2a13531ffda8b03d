// Rules that hold for every endpoint of the toolbox without exception, including endpoints that are added later.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { findUnbounded } from '#src/http/testing/unbounded.ts'
import { toolboxEndpoints } from './endpoints.ts'
import { type Reply, startToolbox, type Toolbox } from './testing/toolbox.ts'

type Route = (typeof toolboxEndpoints)[number]

const titleOf = ({ method, path }: Route) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`

const suites = globSync(['toolbox/**/*.test.ts', 'runner/api.test.ts'], { cwd: join(import.meta.dirname, '..') })
  .map((file) => readFileSync(join(import.meta.dirname, '..', file), 'utf8'))
  .flatMap((text) => [...text.matchAll(/\b(?:suite|test)\(\s*(['"`])((?:(?!\1).)+)\1/g)].map(([, , title]) => title!))

/**
 * Whether the title of a suite or test contains the endpoint `title`. Compares whole paths: `/process/session` is not
 * `/process/session/{sessionId}`.
 */
const isNamed = (title: string) => suites.some((text) => ` ${text} `.match(/[A-Z]+ \/[\w/{}-]*/g)?.includes(title))

suite('every endpoint of the toolbox', () => {
  let box: Toolbox
  before(async () => {
    box = await startToolbox()
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
  })

  /** Returns a route's path for the sandbox with the id `of`. `name` replaces each parameter. Nothing has the default name. */
  const pathOf = ({ path }: Route, of: string, name = 'no-such') => `/toolbox/${of}${path.replaceAll(/:\w+/g, name)}`

  const ask = async ({ method }: Route, path: string, body?: string): Promise<Reply> => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const reply = await fetch(box.url(path), { method, headers, ...(body === undefined ? {} : { body }) })
    const text = await reply.text()
    return { status: reply.status, body: text.startsWith('{') ? JSON.parse(text) : text }
  }

  const walk = async (check: (route: Route) => Promise<void>, wanted: (route: Route) => boolean = () => true) => {
    for (const route of toolboxEndpoints.filter(wanted)) {
      await check(route).catch((error) => {
        throw new Error(`${titleOf(route)}: ${error}`, { cause: error })
      })
    }
  }

  test('every toolbox endpoint has a limit for every text, list and map that it accepts', () => {
    assert.deepEqual(findUnbounded(toolboxEndpoints), [])
  })

  test('every toolbox endpoint is in the table of routes once, and has a summary and a test that names it', () => {
    const titles = toolboxEndpoints.map(titleOf)
    assert.deepEqual(
      titles.filter((title, i) => titles.indexOf(title) !== i),
      [],
    )
    for (const route of toolboxEndpoints) assert.match(route.summary, /^[A-Z].*\.$/, titleOf(route))
    assert.deepEqual(
      titles.filter((title) => !isNamed(title)),
      [],
    )
  })

  /**
   * Expects an error body with every field of the toolbox's error format. Its `path` field must not contain the
   * sandbox's id.
   */
  const isWhole = ({ method }: Route, path: string, { status, body }: Reply) => {
    const { statusCode, code, source, message, timestamp, error, ...rest } = body
    assert.deepEqual(
      [statusCode, source, rest],
      [status, 'DAYTONA_DAEMON', { path: path.replace(/^\/toolbox\/[^/]+/, ''), method }],
    )
    assert.ok([code, message, error].every((text) => typeof text === 'string') && !Number.isNaN(Date.parse(timestamp)))
  }

  test('every toolbox endpoint answers 404 with all fields of an error if the sandbox is not on this host', async () => {
    await walk(async (route) => {
      const path = pathOf(route, 'box-2')
      const reply = await ask(route, path)
      assert.deepEqual([reply.status, reply.body.code], [404, 'NOT_FOUND'])
      isWhole(route, path, reply)
    })
  })

  test('every toolbox endpoint answers 409 if the sandbox is not started; some also accept a paused sandbox', async () => {
    try {
      for (const status of ['stopped', 'archived', 'error', 'paused'] as const) {
        box.held.status = status
        await walk(
          async (route) => {
            const reply = await ask(route, pathOf(route, 'box-1'))
            assert.deepEqual([reply.status, reply.body.code], [409, 'CONFLICT'])
          },
          ({ needs }) => status !== 'paused' || needs === 'sandbox',
        )
      }
    } finally {
      box.held.status = 'started'
    }
  })

  const refusalOf = async (path: string): Promise<number> => {
    const socket = new WebSocket(box.url(path).replace('http', 'ws'))
    socket.on('error', () => undefined)
    const [, answer] = await once(socket, 'unexpected-response')
    answer.resume()
    return answer.statusCode
  }

  test('every WebSocket endpoint of the toolbox answers 404 for a sandbox of another organization', async () => {
    await walk(
      async (route) => assert.equal(await refusalOf(pathOf(route, 'box-2')), 404),
      (route) => 'socket' in route,
    )
  })

  test('every toolbox endpoint without a WebSocket answers 400 to a WebSocket upgrade', async () => {
    await walk(
      async (route) => assert.equal(await refusalOf(pathOf(route, 'box-1')), 400),
      (route) => route.method === 'GET' && !('socket' in route),
    )
  })

  /** Endpoints that require no field in their body. */
  const worksWithAnyBody = /\/context$|^\/computeruse\/(?:start|stop)$/

  test('every toolbox endpoint answers 4xx to invalid names, bodies and queries, never 5xx', async () => {
    for (const name of ['no-such', '%20', '%00', '..%2f..', '%F0%9F%A6%8A', '%ff', 'x'.repeat(2000), '-1'])
      await walk(
        async (route) => {
          const { status } = await ask(route, pathOf(route, 'box-1', name), route.method === 'POST' ? '{}' : undefined)
          assert.ok(status >= 400 && status < 500, `${status} for ${name.slice(0, 30)}`)
        },
        ({ path }) => path.includes(':'),
      )
    for (const body of [
      '{',
      '[]',
      '"x"',
      'null',
      '7',
      '{"__proto__":{}}',
      '{"path":{},"command":[],"id":{},"files":7}',
    ])
      await walk(
        async (route) => {
          const { status } = await ask(route, pathOf(route, 'box-1'), body)
          assert.ok(status >= 400 && status < 500, `${status} for ${body}`)
        },
        ({ method, path }) => method === 'POST' && !worksWithAnyBody.test(path),
      )
  })
})
