// Uses the public SDK from npm as its users do, without a change for these tests.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { after, before, suite, test } from 'node:test'
import { Daytona as CurrentSdk } from '@daytona/sdk'
import { Daytona as LegacySdk } from '@daytonaio/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'

/** Opens a URL as a browser would. Browsers connect to this machine for every name below `localhost`, but Node does not. */
const open = async (url: string, headers: OutgoingHttpHeaders = {}): Promise<[status: number, text: string]> => {
  const { host, port, pathname, search } = new URL(url)
  const asking = request({ host: '127.0.0.1', port, path: pathname + search, headers: { ...headers, host } }).end()
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  return [answer.statusCode ?? 0, Buffer.concat(await answer.toArray()).toString()]
}

for (const [name, Sdk] of [
  ['@daytona/sdk', CurrentSdk],
  ['@daytonaio/sdk', LegacySdk as unknown as typeof CurrentSdk],
] as const) {
  suite(`the SDK ${name} with an Alcove server`, () => {
    let alcove: Platform
    before(async () => {
      alcove = await platform({ env: { ALCOVE_METER_SECONDS: '2' } })
    })
    after(async () => {
      await alcove?.[Symbol.asyncDispose]()
    })

    test('the SDK creates, finds, labels, stops, starts and deletes a sandbox, and runs commands in it', async () => {
      await using daytona = new Sdk({ apiKey: alcove.key, apiUrl: `${alcove.url}/api` })
      const sandbox = await daytona.create({ labels: { purpose: 'test' }, envVars: { GREETING: 'hello' } })
      assert.equal(sandbox.state, 'started')

      assert.equal((await daytona.get(sandbox.id)).id, sandbox.id)
      const listed: string[] = []
      for await (const item of daytona.list({ labels: { purpose: 'test' } })) listed.push(item.id)
      assert.ok(listed.includes(sandbox.id))
      assert.deepEqual(await sandbox.setLabels({ purpose: 'other' }), { purpose: 'other' })

      const echoed = await sandbox.process.executeCommand('echo "$GREETING"; echo oops >&2; exit 3')
      assert.deepEqual([echoed.exitCode, echoed.result], [3, 'hello\noops\n'])
      const inPlace = await sandbox.process.executeCommand('pwd', '/tmp', { A: 'b' }, 5)
      assert.equal(inPlace.result, '/tmp\n')
      const python = await sandbox.process.codeRun('import sys\nprint("py", sys.version_info.major)')
      assert.deepEqual([python.exitCode, python.result], [0, 'py 3\n'])

      await sandbox.process.executeCommand('echo kept > note.txt')
      await sandbox.stop()
      assert.equal(sandbox.state, 'stopped')
      await sandbox.start()
      assert.equal(sandbox.state, 'started')
      assert.equal((await sandbox.process.executeCommand('cat note.txt')).result, 'kept\n')

      await sandbox.delete(60, true)
      await assert.rejects(daytona.get(sandbox.id), /not found|404|no such|There is no/i)
    })

    test('the SDK runs JavaScript and TypeScript code in sandboxes for these languages', async () => {
      await using daytona = new Sdk({ apiKey: alcove.key, apiUrl: `${alcove.url}/api` })
      for (const [language, code] of [
        ['javascript', 'console.log("js", [1,2].map((n) => n * 2).join())'],
        ['typescript', 'enum A { B = 7 }\nconst n: number = A.B\nconsole.log("ts", n)'],
      ] as const) {
        const sandbox = await daytona.create({ language })
        const { exitCode, result } = await sandbox.process.codeRun(code)
        assert.deepEqual([exitCode, result], [0, language === 'javascript' ? 'js 2,4\n' : 'ts 7\n'])
        await sandbox.delete()
      }
    })

    test('the SDK returns a preview link and a signed URL for a port of a sandbox, and clones a repository', async () => {
      await using daytona = new Sdk({ apiKey: alcove.key, apiUrl: `${alcove.url}/api` })
      const sandbox = await daytona.create()
      await sandbox.process.createSession('web')
      await sandbox.process.executeSessionCommand('web', {
        command: 'mkdir site && echo shown > site/index.html && python3 -m http.server 3000 --directory site',
        runAsync: true,
      })
      await until('the server', async () => {
        return (await sandbox.process.executeCommand('curl -sf localhost:3000')).exitCode === 0
      })
      const link = await sandbox.getPreviewLink(3000)
      assert.deepEqual(await open(link.url, { 'x-daytona-preview-token': link.token }), [200, 'shown\n'])
      assert.equal((await open(link.url))[0], 401)
      const signed = await sandbox.getSignedPreviewUrl(3000, 60)
      assert.deepEqual(await open(signed.url), [200, 'shown\n'])
      await sandbox.expireSignedPreviewUrl(3000, signed.token)
      await until('the end of the signed URL', async () => (await open(signed.url))[0] === 401)

      await sandbox.process.executeCommand('git init -q -b main repo && cd repo && echo one > file')
      await sandbox.git.add('repo', ['file'])
      const { sha } = await sandbox.git.commit('repo', 'first', 'Ada', 'ada@example.com')
      assert.match(sha, /^[0-9a-f]{40}$/)
      await sandbox.git.createBranch('repo', 'feature')
      assert.deepEqual((await sandbox.git.branches('repo')).branches.sort(), ['feature', 'main'])
      await sandbox.delete()
    })

    test('the SDK returns the present and earlier use of CPU, memory and disk of a sandbox', async () => {
      await using daytona = new Sdk({ apiKey: alcove.key, apiUrl: `${alcove.url}/api` })
      const sandbox = await daytona.create()
      const now = await sandbox.getMetricsLatest()
      const GiB = 2 ** 30
      assert.deepEqual(
        [now.cpuCount, now.memTotal / GiB, now.diskTotal / GiB],
        [sandbox.cpu, sandbox.memory, sandbox.disk],
      )
      assert.ok(now.memUsed > 0 && now.memUsed < now.memTotal && now.cpuUsedPct <= 100, JSON.stringify(now))
      await until('a sample', async () => (await sandbox.getMetrics()).length > 0)
      const [first = assert.fail()] = await sandbox.getMetrics()
      assert.deepEqual([first.cpuCount, first.memTotal, first.diskTotal], [now.cpuCount, now.memTotal, now.diskTotal])
      assert.ok(first.memUsed > 0 && first.timestamp >= new Date(sandbox.createdAt ?? ''), JSON.stringify(first))
      await sandbox.delete()
    })

    test('the SDK throws an error if a command exceeds its timeout', async () => {
      await using daytona = new Sdk({ apiKey: alcove.key, apiUrl: `${alcove.url}/api` })
      const sandbox = await daytona.create()
      await assert.rejects(sandbox.process.executeCommand('sleep 30', undefined, undefined, 1), /timeout/i)
      await sandbox.delete()
    })
  })
}

suite('a program that uses the SDK', () => {
  test('a program that uses the SDK ends when its work is done, even while its sandboxes still run', async () => {
    const alcove = await platform()
    try {
      const script = `
        import { Daytona } from '@daytona/sdk'
        const daytona = new Daytona({ apiKey: process.env.KEY, apiUrl: process.env.API })
        const sandbox = await daytona.create()
        console.log((await sandbox.process.executeCommand('echo done')).result)`
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
        env: { PATH: process.env['PATH'], KEY: alcove.key, API: `${alcove.url}/api` },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let printed = ''
      child.stdout.on('data', (data) => {
        printed += data
      })
      // The SDK opens a WebSocket for events. If the server did not answer it, timers of the SDK would keep the script running for
      // 180 s.
      const late = setTimeout(() => child.kill('SIGKILL'), 90_000)
      const code = await new Promise((resolve) => child.on('exit', resolve))
      clearTimeout(late)
      assert.deepEqual([code, printed.trim()], [0, 'done'])
    } finally {
      await alcove[Symbol.asyncDispose]()
    }
  })
})
