// Tests the language servers of a sandbox, with a fake server. The name of a project says how the fake server behaves.
import assert from 'node:assert/strict'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { until } from '../agent/testing/native-agent.ts'
import { searchPath } from '../testing/assignment.ts'
import { type Reply, startToolbox, type Toolbox } from '../testing/toolbox.ts'
import { BadServer } from './framing.ts'
import { bounds, LanguageServer } from './server.ts'
import { mostServers } from './servers.ts'

const isAlive = (pid: number) => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

suite('language servers', () => {
  let box: Toolbox
  before(async () => {
    box = await startToolbox()
    const programs = join(box.directory, 'programs')
    mkdirSync(programs)
    copyFileSync(join(import.meta.dirname, 'testing/fake-server.mjs'), join(programs, 'pylsp'))
    chmodSync(join(programs, 'pylsp'), 0o755)
    box.assignment.env['PATH'] = `${programs}:${searchPath}`
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
  })

  const project = (name: string) => {
    const pathToProject = join(box.directory, name)
    mkdirSync(pathToProject, { recursive: true })
    writeFileSync(join(pathToProject, 'a.py'), 'text of a')
    const of = { languageId: 'python', pathToProject }
    const uri = `file://${pathToProject}/a.py`
    const position = { line: 0, character: 1 }
    return {
      pathToProject,
      uri,
      call: (verb: string, more: object = {}): Promise<Reply> => box.post(`/lsp/${verb}`, { ...of, ...more }),
      complete: (more: object = {}) => box.post('/lsp/completions', { ...of, uri, position, ...more }),
      symbols: (path: string, more: Record<string, string>) =>
        box.get(`/lsp/${path}?${new URLSearchParams({ ...of, ...more })}`),
      pids: () => {
        const file = join(pathToProject, 'started')
        return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : []
      },
    }
  }

  const started = async (name: string) => {
    const made = project(name)
    const { status, body } = await made.call('start')
    assert.equal(status, 200, JSON.stringify(body))
    return made
  }

  const label = ({ body }: Reply) => body.items[0]?.label

  test('POST /lsp/start answers 200 to repeated and parallel calls and starts one server; POST /lsp/stop ends it', async () => {
    const work = project('one server')
    const replies = await Promise.all(Array.from({ length: 4 }, () => work.call('start')))
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200])
    assert.equal((await work.call('start', { pathToProject: `${work.pathToProject}/.` })).status, 200)
    const [pid, ...others] = work.pids()
    assert.deepEqual(others, [])
    assert.ok(isAlive(pid!))
    assert.equal((await work.call('stop')).status, 200)
    await until(() => !isAlive(pid!), 'the server has ended')
    assert.equal((await work.call('start')).status, 200)
    assert.equal(work.pids().length, 2)
    await work.call('stop')
  })

  test('language server calls answer 400 LSP_SERVER_NOT_INITIALIZED before the start and after the stop', async () => {
    const work = await started('not started')
    const calls = () => [
      work.call('stop'),
      work.call('did-open', { uri: work.uri }),
      work.call('did-close', { uri: work.uri }),
      work.complete(),
      work.symbols('document-symbols', { uri: work.uri }),
      work.symbols('workspacesymbols', { query: 'a' }),
    ]
    await work.call('stop')
    for (const { status, body } of await Promise.all(calls())) {
      assert.deepEqual([status, body.code], [400, 'LSP_SERVER_NOT_INITIALIZED'])
    }
  })

  test('POST /lsp/did-open, POST /lsp/did-close, POST /lsp/completions give the server the file’s current text', async () => {
    const work = await started('documents')
    assert.equal(label(await work.complete()), 'closed 1')
    assert.equal((await work.call('did-open', { uri: work.uri })).status, 200)
    assert.equal(label(await work.complete()), 'python text of a 1')
    writeFileSync(join(work.pathToProject, 'a.py'), 'changed')
    await work.call('did-open', { uri: work.uri })
    assert.equal(label(await work.complete({ context: { triggerKind: 2, triggerCharacter: '.' } })), 'python changed 2')
    assert.equal((await work.call('did-close', { uri: work.uri })).status, 200)
    assert.equal((await work.call('did-close', { uri: work.uri })).status, 200)
    assert.equal(label(await work.complete()), 'closed 1')
    await work.call('stop')
  })

  test('GET /lsp/document-symbols, GET /lsp/workspacesymbols answer 200 with symbols', async () => {
    const work = await started('symbols')
    await work.call('did-open', { uri: work.uri })
    const nowhere = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } }
    const { body } = await work.symbols('document-symbols', { uri: work.uri })
    const location = { uri: work.uri, range: nowhere }
    assert.deepEqual(body, [{ name: 'python text of a', kind: 5, location }])
    const found = await work.symbols('workspacesymbols', { query: 'gr eet' })
    assert.deepEqual(found.body, [{ name: 'gr eet', kind: 12, location: { uri: 'file:///w', range: nowhere } }])
    await work.call('stop')
  })

  test('language server calls accept plain and percent-encoded paths after file://; 404 for a missing file', async () => {
    const work = await started('names of files')
    const name = join(work.pathToProject, 'ä 100%.py')
    writeFileSync(name, 'odd')
    for (const uri of [`file://${name}`, `file://${encodeURI(name).replaceAll('%25', '%25')}`]) {
      assert.equal((await work.call('did-open', { uri })).status, 200, uri)
      assert.equal(label(await work.complete({ uri })), 'python odd 1')
    }
    writeFileSync(join(work.pathToProject, 'large.py'), Buffer.alloc(2 * 1024 * 1024 + 1, 'x'))
    writeFileSync(join(work.pathToProject, 'control.py'), Buffer.alloc(2 * 1024 * 1024, 1))
    for (const [uri, status] of [
      [`file://${work.pathToProject}/control.py`, 422],
      ['file://', 400],
      ['/tmp/a.py', 400],
      ['http://a/b', 400],
      [`file://${work.pathToProject}/missing.py`, 404],
      [`file://${work.pathToProject}`, 400],
      [`file://${work.pathToProject}/large.py`, 422],
      ['file:///%00', 400],
    ] as const) {
      const { status: told, body } = await work.call('did-open', { uri })
      assert.equal(told, status, `${uri}: ${JSON.stringify(body)}`)
    }
    await work.call('stop')
  })

  test('a language server call looks for a relative path in the working directory, then in the project', async () => {
    const work = await started('relative paths')
    const workdir = join(box.directory, 'workdir')
    mkdirSync(join(workdir, 'sub'), { recursive: true })
    writeFileSync(join(workdir, 'sub/b.py'), 'b of workdir')
    writeFileSync(join(workdir, 'both.py'), 'both of workdir')
    writeFileSync(join(work.pathToProject, 'both.py'), 'both of project')
    box.held.config = { env: {}, workdir }
    try {
      for (const [path, text] of [
        ['sub/b.py', 'b of workdir'],
        ['./sub/../both.py', 'both of workdir'],
        ['a.py', 'text of a'],
      ] as const) {
        const uri = `file://${path}`
        assert.equal((await work.call('did-open', { uri })).status, 200, path)
        assert.equal(label(await work.complete({ uri })), `python ${text} 1`)
        assert.equal((await work.symbols('document-symbols', { uri })).body[0].name, `python ${text}`)
        assert.equal((await work.call('did-close', { uri })).status, 200)
        assert.equal(label(await work.complete({ uri })), 'closed 1')
      }
      const { status, body } = await work.call('did-open', { uri: 'file://missing.py' })
      assert.deepEqual([status, body.message.includes(join(workdir, 'missing.py'))], [404, true])
    } finally {
      delete box.held.config
    }
    await work.call('stop')
  })

  test('POST /lsp/start answers 400 for an unknown language or project, 422 if the image lacks the server', async () => {
    const work = project('refused')
    for (const languageId of ['ruby', '', 'Python', '__proto__']) {
      assert.equal((await work.call('start', { languageId })).status, 400, languageId)
    }
    const nowhere = await work.call('start', { pathToProject: join(box.directory, 'nowhere') })
    assert.deepEqual([nowhere.status, /cannot be used: it does not exist/.test(nowhere.body.message)], [400, true])
    for (const position of [
      null,
      {},
      { line: -1, character: 0 },
      { line: 0.5, character: 0 },
      { line: 2 ** 31, character: 0 },
    ]) {
      assert.equal((await work.complete({ position })).status, 400)
    }
    const path = box.assignment.env['PATH']
    box.assignment.env['PATH'] = '/nowhere'
    const missing = await Promise.all(
      ['python', 'typescript', 'javascript'].map((languageId) => work.call('start', { languageId })),
    )
    box.assignment.env['PATH'] = path!
    assert.deepEqual(
      missing.map(({ status, body }) => [status, body.message.replace(/^.* in the sandbox: /, '')]),
      [
        [422, 'sudo apt-get install python3-pylsp, or npm install -g pyright'],
        [422, 'npm install -g typescript'],
        [422, 'npm install -g typescript'],
      ],
    )
  })

  for (const [name, message] of [
    ['dies', /^The language server ended with 3\. out of luck$/],
    ['negative length', /not a message/],
    ['gigantic length', /more than 4194304 bytes/],
    ['endless header', /not a message/],
    ['bad json', /not JSON/],
    ['deep json', /too deep/],
    ['not an object', /not an object/],
    ['endless notifications', /too many messages/],
    ['endless questions', /too many messages/],
    ['endless stderr', /writes more than 16777216 bytes/],
  ] as const) {
    const problem = name.includes(' ') ? `sends: ${name}` : name
    test(`an LSP call answers 422 if its language server ${problem}; another server still answers`, async () => {
      const other = await started('beside it')
      const work = await started(name)
      const [pid] = work.pids()
      const [bad, good] = await Promise.all([work.complete(), other.complete()])
      assert.deepEqual([bad.status, bad.body.code, good.status], [422, 'UNPROCESSABLE_ENTITY', 200])
      assert.match(bad.body.message, message)
      await until(() => !isAlive(pid!), 'the server is ended')
      assert.equal((await work.complete()).body.code, 'LSP_SERVER_NOT_INITIALIZED')
      assert.equal((await work.call('start')).status, 200)
      await Promise.all([work.call('stop'), other.call('stop')])
    })
  }

  test('a language server that sends too much output while no call runs is ended', async () => {
    const work = await started('floods alone')
    const [pid] = work.pids()
    await until(() => !isAlive(pid!), 'the server is ended')
    assert.equal((await work.complete()).status, 400)
  })

  test('an LSP call answers 422 with the reason if the language server refuses the call', async () => {
    const refusing = await started('refuses')
    const { status, body } = await refusing.complete()
    assert.deepEqual(
      [status, body.message],
      [422, 'The language server refused textDocument/completion: no such position'],
    )
    assert.equal((await refusing.symbols('workspacesymbols', { query: '' })).status, 200)
    await refusing.call('stop')
    const lying = await started('wrong ids')
    for (let n = 0; n < 3; n += 1) assert.equal(label(await lying.complete()), 'right')
    await lying.call('stop')
    const odd = await started('odd answers')
    assert.deepEqual((await odd.complete()).body, { isIncomplete: false, items: [{ label: 'odd' }] })
    await odd.call('stop')
  })

  test('POST /lsp/start answers 422 if the language server does not speak the protocol, and ends the server', async () => {
    for (const name of ['speaks no protocol', 'does not start']) {
      const work = project(name)
      const { status, body } = await work.call('start')
      assert.equal(status, 422, JSON.stringify(body))
      await until(() => work.pids().every((pid) => !isAlive(pid)), 'it is ended')
      assert.equal((await work.complete()).status, 400)
    }
  })

  test(`POST /lsp/start answers 429 above ${mostServers} servers of one sandbox, until one is stopped`, async () => {
    const all = []
    for (let n = 0; n < mostServers; n += 1) all.push(await started(`many ${n}`))
    const more = project('one too many')
    assert.equal((await more.call('start')).status, 429)
    await all[0]!.call('stop')
    assert.equal((await more.call('start')).status, 200)
    for (const each of [...all.slice(1), more]) assert.equal((await each.call('stop')).status, 200)
  })

  test('a language server in a sandbox ends 15 minutes after the last call to that server', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const work = await started('idle')
    const [pid] = work.pids()
    t.mock.timers.tick(14 * 60_000)
    assert.equal((await work.complete()).status, 200)
    t.mock.timers.tick(14 * 60_000)
    assert.equal((await work.complete()).status, 200)
    t.mock.timers.tick(15 * 60_000)
    t.mock.timers.reset()
    await until(() => !isAlive(pid!), 'the server is ended')
    assert.equal((await work.complete()).body.code, 'LSP_SERVER_NOT_INITIALIZED')
  })

  test('a language server ends when its sandbox stops, and the next call is refused', async () => {
    const work = await started('ends with the sandbox')
    const [pid] = work.pids()
    await box.native[Symbol.asyncDispose]()
    await until(() => !isAlive(pid!), 'the server has ended')
    const { status } = await work.complete()
    assert.ok([400, 409, 422].includes(status), String(status))
  })
})

suite('a language server with small limits', () => {
  const run = async (box: Toolbox, name: string, limits: typeof bounds) => {
    const cwd = join(box.directory, name)
    mkdirSync(cwd)
    const argv = [process.execPath, join(import.meta.dirname, 'testing/fake-server.mjs')]
    const sandbox = {
      agent: (await import('../agent/agent.ts')).agentAt(box.held.socketPath),
      assignment: box.assignment,
    }
    const server = await LanguageServer.run(sandbox, { argv, env: { PATH: searchPath }, cwd }, limits)
    await server.request('initialize', {})
    server.notify('initialized', {})
    return server
  }
  const completion = { textDocument: { uri: 'file:///a' }, context: {} }

  test('a slow language server keeps running; its calls answer 408, and 429 if too many calls wait for it', async () => {
    await using box = await startToolbox()
    // Only the calls that the server never answers get a short limit, because a slow machine may need long for the others.
    const limits = { ...bounds, mostWaiting: 2 }
    const server = await run(box, 'hangs', limits)
    limits.answerMs = 300
    const waiting = [
      server.request('textDocument/completion', completion),
      server.request('textDocument/completion', completion),
    ]
    await assert.rejects(server.request('workspace/symbol', { query: 'a' }), { status: 429 })
    limits.answerMs = bounds.answerMs
    for (const each of await Promise.allSettled(waiting)) {
      assert.equal(each.status === 'rejected' && each.reason.status, 408)
    }
    const [{ name } = assert.fail()] = (await server.request('workspace/symbol', { query: 'a' })) as { name: string }[]
    assert.equal(name, 'a')
    server.end()
  })

  test('an LSP call answers 422 if the language server does not read its input', async () => {
    await using box = await startToolbox()
    const server = await run(box, 'reads nothing', { ...bounds, unsentBytes: 1024 * 1024 })
    assert.throws(
      () => {
        for (let n = 0; n < 100; n += 1) server.notify('textDocument/didOpen', { text: 'x'.repeat(64 * 1024) })
      },
      { status: 422, message: /does not read its requests/ },
    )
    assert.ok(server.hasEnded)
    await server.ended
    await assert.rejects(server.request('workspace/symbol', {}), (error: Error) => error.cause instanceof BadServer)
  })
})
