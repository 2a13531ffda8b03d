// For malformed, huge or hostile input, the caller gets a clear answer and the server keeps running.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

suite('bad input', () => {
  let alcove: Platform
  let box: Box
  before(async () => {
    alcove = await platform()
    box = await createBox(alcove)
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const raw = (url: string, body: string | Uint8Array<ArrayBuffer>, type = 'application/json') =>
    fetch(url, { method: 'POST', body, headers: { authorization: `Bearer ${alcove.key}`, 'content-type': type } })

  test('control and toolbox answer 400 for malformed JSON', async () => {
    for (const url of [`${alcove.url}/api/sandbox`, `${box.record['toolboxProxyUrl']}/${box.id}/process/execute`]) {
      const reply = await raw(url, '{"name":')
      assert.equal(reply.status, 400, url)
      assert.equal(((await reply.json()) as { code: string }).code, 'INVALID_REQUEST_BODY')
    }
  })

  test('control and toolbox answer 413 for a request body of 10 MB, and the sandbox keeps working', async () => {
    const body = JSON.stringify({ command: 'x'.repeat(10_000_000), name: 'y' })
    for (const url of [`${alcove.url}/api/sandbox`, `${box.record['toolboxProxyUrl']}/${box.id}/process/execute`]) {
      const reply = await raw(url, body).catch((error) => error as Error)
      // The server may answer and close the connection early. A client that still sends its body then gets an error.
      if (!(reply instanceof Error)) assert.equal(reply.status, 413, url)
    }
    assert.equal(await box.run('echo up'), 'up')
  })

  test('POST /sandbox answers 400 if fields have the wrong type, and the error names these fields', async () => {
    const { status, body } = await alcove.api('POST', '/sandbox', { name: 5, labels: 'x', public: 'maybe' })
    assert.equal(status, 400)
    assert.equal(typeof body['message'], 'string')
    assert.match(String(body['message']), /name.*labels.*public|labels|name/)
  })

  for (const [field, value] of [
    ['cpu', 0],
    ['memory', -1],
    ['disk', 1.5],
    ['cpu', 1e9],
    ['autoStopInterval', -1],
    ['ttlMinutes', -5],
  ] as const) {
    test(`POST /sandbox answers 400 or 403 if the field ${field} is ${value}`, async () => {
      const { status } = await alcove.api('POST', '/sandbox', { [field]: value })
      assert.ok(status === 400 || status === 403, String(status))
    })
  }

  test('POST /sandbox answers 400 for an invalid name, and 409 for the name of an existing sandbox', async () => {
    for (const name of ['', ' ', '<b>x</b>', 'http://x', 'a\u0000b', 'a\u0007b', 'DESTROYED_x']) {
      assert.equal((await alcove.api('POST', '/sandbox', { name })).status, 400, JSON.stringify(name))
    }
    await using named = await createBox(alcove, { name: 'taken' })
    assert.ok(named.id)
    assert.equal((await alcove.api('POST', '/sandbox', { name: 'taken' })).status, 409)
  })

  test('calls of control and toolbox answer 404 if the path has an unknown sandbox id', async () => {
    for (const [method, path] of [
      ['GET', '/sandbox/nope'],
      ['POST', '/sandbox/nope/start'],
      ['POST', '/sandbox/nope/stop'],
      ['DELETE', '/sandbox/nope'],
    ] as const) {
      assert.equal((await alcove.api(method, path)).status, 404, path)
    }
    const reply = await raw(`${box.record['toolboxProxyUrl']}/nope/process/execute`, '{"command":"true"}')
    assert.equal(reply.status, 404)
  })

  test('an `execute` call answers 401 without a valid credential, and 409 if the sandbox is stopped', async () => {
    const url = `${box.record['toolboxProxyUrl']}/${box.id}/process/execute`
    assert.equal((await fetch(url, { method: 'POST' })).status, 401)
    assert.equal((await fetch(url, { method: 'POST', headers: { authorization: 'Bearer dtn_wrong' } })).status, 401)
    await using stopped = await createBox(alcove)
    assert.equal((await alcove.api('POST', `/sandbox/${stopped.id}/stop`)).status, 200)
    for (let tries = 0; tries < 300; tries++) {
      if ((await alcove.api('GET', `/sandbox/${stopped.id}`)).body['state'] === 'stopped') break
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    const refused = await stopped.toolbox('POST', '/process/execute', { command: 'true' })
    assert.equal(refused.status, 409)
    assert.match(String(refused.body['message']), /start|stopped/i)
  })

  test('`execute` and `POST /sandbox` answer 400 for an invalid name of an environment variable', async () => {
    const { status } = await box.toolbox('POST', '/process/execute', { command: 'true', envs: { 'A B': 'c' } })
    assert.equal(status, 400)
    assert.equal((await alcove.api('POST', '/sandbox', { env: { '1x': 'y' } })).status, 400)
  })

  test('a command fails if its cwd does not exist, is a file, or is a directory that only root may enter', async () => {
    for (const cwd of ['/nope', '/proc/self/fd/0', '/proc/1/root', '/root', '/etc/passwd']) {
      const { status, body } = await box.toolbox('POST', '/process/execute', { command: 'pwd', cwd })
      assert.ok(
        status === 400 || (status === 200 && body['exitCode'] !== 0),
        `${cwd}: ${status} ${JSON.stringify(body)}`,
      )
    }
  })

  test('a command whose text is 1 MiB long runs', async () => {
    const words = 'x'.repeat(1024 * 1024)
    assert.equal(await box.run(`v=${words}; echo \${#v}`), String(words.length))
  })

  test('a command’s output of 1 GiB is cut; the answer says so, and the runner needs little memory meanwhile', async () => {
    const before = await alcove.memoryOf('runner')
    const { result } = await box.try('head -c 1073741824 /dev/zero | tr "\\0" y', { timeout: 300 })
    assert.ok(result.length < 64 * 1024 * 1024, String(result.length))
    assert.match(result, /\[output truncated/)
    assert.equal(await box.run('echo up'), 'up')
    const growth = (await alcove.memoryOf('runner')) - before
    assert.ok(growth < 400 * 1024 * 1024, `the runner grew by ${growth} bytes`)
  })

  test('after its timeout, an `execute` call answers 408, and all processes that the call started are killed', async () => {
    const { status, body } = await box.toolbox('POST', '/process/execute', {
      command: 'sleep 333 & sleep 334',
      timeout: 1,
    })
    assert.deepEqual([status, body['code']], [408, 'PROCESS_EXECUTION_TIMEOUT'])
    assert.match(String(body['message']), /timeout/i)
    // A killed process is listed until the kernel has let it end.
    await until('they are gone', async () => (await box.try('pgrep -f "sleep 33[34]"')).exitCode === 1)
  })
})
