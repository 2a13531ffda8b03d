import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from './agent/testing/native-agent.ts'
import { heldBodies } from './held-bodies.ts'
import { startToolbox, type Toolbox } from './testing/toolbox.ts'

const MiB = 1024 * 1024
const execute = '/process/execute'

/** Stops the agent, so that it reads nothing. `hear`, or disposing of the result, lets it continue. */
const deafen = (box: Toolbox) => {
  process.kill(box.native.pid, 'SIGSTOP')
  const hear = () => process.kill(box.native.pid, 'SIGCONT')
  return { hear, [Symbol.dispose]: hear }
}

/** Appends a comment of `bytes` bytes to a program. `mark`: what starts a comment in the program's language. */
const withComment = (text: string, bytes: number, mark = '#') => `${text} ${mark} ${'x'.repeat(bytes)}`

const hasRoom = (sandboxId: string, size: number): boolean => {
  const isTaken = heldBodies.take(sandboxId, size)
  if (isTaken) heldBodies.give(sandboxId, size)
  return isTaken
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Returns the bytes of memory in use after a garbage collection. */
const heldHere = () => {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

suite('request bodies of calls that wait for their sandbox', () => {
  test('a request body that the gate has passed on does not count as waiting, and its memory is freed', async () => {
    await using box = await startToolbox()
    const stop = new AbortController()
    const begin = (path: string, body: () => object, headers = {}) => {
      const call = box.call(path, body(), headers)
      call.on('error', () => undefined)
      stop.signal.addEventListener('abort', () => call.destroy())
    }
    const running = (name: string) => until(() => existsSync(join(box.directory, name)), name)
    await box.post('/process/session', { sessionId: 's' })
    await box.post(execute, { command: 'true' })
    const before = heldHere()
    for (const [name, headers] of [
      ['plain', {}],
      ['with-key', { 'idempotency-key': 'k' }],
    ] as const) {
      const command = `touch ${box.directory}/${name}; sleep 300`
      begin(execute, () => ({ command: withComment(command, 4 * MiB), timeout: 0 }), headers)
      await running(name)
    }
    const code = `require('fs').writeFileSync('${box.directory}/code', ''); setTimeout(() => {}, 300_000)`
    begin('/process/code-run', () => ({ code: withComment(code, 4 * MiB, '//'), language: 'javascript' }))
    await running('code')
    const queued = async () => (await box.get('/process/session/s')).body.commands.length
    for (let command = 1; command <= 8; command++) {
      begin('/process/session/s/exec', () => ({ command: withComment('sleep 300', MiB - 100) }))
      await until(async () => (await queued()) === command, 'the command')
    }
    await until(() => !heldBodies.has('box-1'), 'everything passed on')
    await until(() => heldHere() - before < 8 * MiB, '20 MiB let go')
    stop.abort()
  })

  test('if a call times out while it waits for a sandbox, the memory of the call’s request body is freed', async () => {
    await using box = await startToolbox()
    await box.post(execute, { command: 'true' })
    using _ = deafen(box)
    const before = heldHere()
    for (let call = 0; call < 4; call++) {
      const { status } = await box.post(execute, { command: withComment('true', 7 * MiB), timeout: 0.1 })
      assert.equal(status, 408)
    }
    await until(() => heldHere() - before < 10 * MiB, '28 MiB let go')
  })

  test('a call is refused with 429 above 16 MiB of request bodies that wait for one sandbox', async () => {
    await using box = await startToolbox()
    using deaf = deafen(box)
    const run = (code: string) =>
      box.post('/process/code-run', { code: withComment(code, 7 * MiB, '//'), language: 'javascript' })
    const waiting = [run('console.log(1)'), run('console.log(2)')]
    await until(() => !hasRoom('box-1', 7 * MiB), 'both bodies')
    const tooMuch = [
      box.post(execute, { command: withComment('true', 7 * MiB) }),
      run('console.log(3)'),
      box.post('/process/session/s/exec', { command: 'x'.repeat(7 * MiB) }),
      box.post('/process/session/s/command/c/input', { data: 'x'.repeat(7 * MiB) }),
    ]
    for (const reply of await Promise.all(tooMuch)) assert.deepEqual(reply.body.code, 'TOO_MANY_REQUESTS')
    deaf.hear()
    const results = (await Promise.all(waiting)).map(({ body }) => body.result)
    assert.deepEqual(results, ['1\n', '2\n'])
    assert.equal((await run('console.log(3)')).body.result, '3\n')
    assert.equal(heldBodies.has('box-1'), false)
  })

  test('above 256 MiB of waiting request bodies in total, calls get 429; each sandbox may always have 64 KiB', async (t) => {
    await using box = await startToolbox()
    for (let other = 0; other < 16; other++) {
      assert.ok(heldBodies.take(`other-${other}`, 16 * MiB))
      t.after(() => heldBodies.give(`other-${other}`, 16 * MiB))
    }
    assert.equal((await box.post(execute, { command: withComment('true', 64 * 1024) })).status, 429)
    for (let round = 0; round < 2; round++)
      assert.equal((await box.post(execute, { command: withComment('echo short', 40_000) })).body.result, 'short\n')
  })
})
