// Uses the tools of `/mcp` with the official clients of the Model Context Protocol (MCP), in their versions 2.x and 1.x.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as FormerClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FormerTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { type Platform, platform } from './harness.ts'

const root = resolve(import.meta.dirname, '../..')
const guide = readFileSync(join(root, 'docs/guides/mcp.md'), 'utf8')

type Result = { isError?: boolean | undefined; content: { type: string; text?: string }[] }

suite('the Model Context Protocol (POST /mcp), with its official clients', () => {
  let alcove: Platform
  let client: Client
  before(async () => {
    alcove = await platform()
    client = new Client({ name: 'test', version: '1' })
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${alcove.url}/mcp`), {
        requestInit: { headers: { authorization: `Bearer ${alcove.key}` } },
      }),
    )
  })
  after(async () => {
    await client?.close()
    await alcove?.[Symbol.asyncDispose]()
  })

  const use = async (name: string, given: Record<string, unknown> = {}) => {
    const { content, isError = false } = (await client.callTool({ name, arguments: given })) as Result
    return { text: content.map(({ text }) => text).join(''), isError }
  }
  const done = async (name: string, given?: Record<string, unknown>) => {
    const { text, isError } = await use(name, given)
    assert.ok(!isError, text)
    return text
  }

  test('an MCP client creates a sandbox, works in it, gets a preview link and deletes the sandbox', async () => {
    const made = JSON.parse(await done('create_sandbox', { env: { GREETING: 'hello' } })) as {
      id: string
      state: string
    }
    assert.equal(made.state, 'started')
    const sandbox = made.id
    try {
      assert.equal(await done('run_command', { sandbox, command: 'echo $GREETING; exit 3' }), 'exit code 3\nhello\n')
      assert.equal(await done('run_code', { sandbox, code: 'print(6 * 7)' }), 'exit code 0\n42\n')
      await done('write_file', { sandbox, path: 'new/notes.txt', content: 'first line\n' })
      assert.equal(await done('read_file', { sandbox, path: 'new/notes.txt' }), 'first line\n')
      assert.equal(await done('list_files', { sandbox, path: 'new' }), 'notes.txt\t11 bytes')
      assert.match(await done('list_sandboxes'), new RegExp(sandbox))
      await done('run_command', { sandbox, command: 'git init -q new && git -C new branch -m main' })
      const author = { author: 'Ada', email: 'ada@example.com' }
      assert.match(
        await done('git_commit', { sandbox, path: 'new', message: 'begin', ...author }),
        /is [0-9a-f]{40}\.$/,
      )
      assert.match(await done('git_status', { sandbox, path: 'new' }), /"currentBranch":"main"/)
      await done('run_command', { sandbox, command: 'cd new && (python3 -m http.server 8000 >/dev/null 2>&1 &)' })
      const url = await done('preview_link', { sandbox, port: 8000 })
      assert.match(url, /8000/)
      assert.match(await done('stop_sandbox', { sandbox }), /"state":"stopped"/)
      assert.match(await done('start_sandbox', { sandbox }), /"state":"started"/)
      assert.equal(await done('run_command', { sandbox, command: 'cat new/notes.txt' }), 'exit code 0\nfirst line\n')
    } finally {
      await done('delete_sandbox', { sandbox })
    }
  })

  test('a long output of an MCP tool is cut in the middle, and a long file is read in parts', async () => {
    const { id: sandbox } = JSON.parse(await done('create_sandbox')) as { id: string }
    try {
      const output = await done('run_command', { sandbox, command: 'seq 1 50000 | tee numbers.txt' })
      assert.match(output, /^exit code 0\n1\n2\n[\s\S]*\[… \d+ characters are left out here …\][\s\S]*\n50000\n$/)
      assert.ok(output.length < 51_000)
      const size = 288_894
      const first = await done('read_file', { sandbox, path: 'numbers.txt' })
      assert.match(first, new RegExp(`\\[The file has ${size} bytes. Continue with offset 50000.\\]$`))
      assert.equal(await done('read_file', { sandbox, path: 'numbers.txt', offset: size - 6 }), '50000\n')
      const binary = await use('read_file', { sandbox, path: '/bin/true' })
      assert.deepEqual([binary.isError, /is a binary file/.test(binary.text)], [true, true])
    } finally {
      await done('delete_sandbox', { sandbox })
    }
  })

  test('the error of a refused MCP tool call says what to do; invalid input does not reach a sandbox', async () => {
    const missing = await use('run_command', { sandbox: 'no-such-sandbox', command: 'true' })
    assert.deepEqual([missing.isError, /not found.*\(404 NOT_FOUND\)$/i.test(missing.text)], [true, true])
    const invalid = await use('run_command', { sandbox: 'x', command: 'true', timeoutSeconds: 0 }).catch(String)
    assert.match(JSON.stringify(invalid), /timeoutSeconds/)
  })

  test('the official MCP client of version 1.x lists and calls the tools', async () => {
    const former = new FormerClient({ name: 'former', version: '1' })
    const transport = new FormerTransport(new URL(`${alcove.url}/api/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${alcove.key}` } },
    })
    // The cast is needed, because the types of the MCP client 1.x do not compile with TypeScript's option
    // `exactOptionalPropertyTypes`.
    await former.connect(transport as Parameters<FormerClient['connect']>[0])
    try {
      const { tools } = await former.listTools()
      const reading = tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name)
      assert.deepEqual(reading, ['list_sandboxes', 'list_files', 'read_file', 'git_status'])
      const { content } = (await former.callTool({ name: 'list_sandboxes', arguments: { limit: 1 } })) as Result
      assert.equal(content.length, 1)
    } finally {
      await former.close()
    }
  })

  test('POST /mcp answers 401 without a credential; GET and DELETE answer 405, because there are no sessions', async () => {
    const ask = (method: string, headers = {}) => fetch(`${alcove.url}/mcp`, { method, headers })
    assert.equal((await ask('POST', { 'content-type': 'application/json' })).status, 401)
    const caller = { accept: 'text/event-stream', authorization: `Bearer ${alcove.key}` }
    assert.deepEqual([(await ask('GET', caller)).status, (await ask('DELETE', caller)).status], [405, 405])
  })

  test('the guide mcp.md names exactly the tools that the curl command in the guide lists', async () => {
    const [, command = ''] = /```sh\n([\s\S]*?)```/.exec(guide) ?? []
    const here = command
      .replace('http://127.0.0.1:4600', alcove.url)
      .replace('./alcove key', `./alcove key --data ${alcove.data}`)
    const { stdout } = await promisify(execFile)('sh', ['-c', here], { cwd: root })
    const [, json = stdout] = /^data: (.*)$/m.exec(stdout) ?? []
    const { tools } = (JSON.parse(json) as { result: { tools: { name: string }[] } }).result
    const rows = guide.split('\n').filter((line) => line.startsWith('| `'))
    const named = rows.flatMap((line) => [...line.matchAll(/`(\w+)`/g)].map(([, name]) => name))
    assert.deepEqual(named.sort(), tools.map(({ name }) => name).sort())
  })
})
