// Calls real development servers in a sandbox by the host name of a preview. By default, most development servers refuse this name.
// Tests the two remedies of docs/guides/development-servers.md: the sandbox's label `preview-host`, and settings of the development
// server.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { WebSocket } from 'ws'
import { runCommand } from '#src/kit/run-command.ts'
import { until } from './box.ts'
import { programsOf, readPage } from './guide.ts'
import { installGuidePackages, unpackDebianPackages } from './guide-packages.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const page = readPage('docs/guides/development-servers.md')
const programs = programsOf(page)

type Server = { port: number; path: string; command: string; files: Record<string, string>; setting?: string }

const servers = {
  vite: {
    port: 5173,
    path: '/',
    command: 'node_modules/.bin/vite',
    files: { 'index.html': '<p>seen</p><script type="module" src="/main.js"></script>', 'main.js': 'console.log(1)' },
    setting: 'vite.config.js',
  },
  webpack: {
    port: 8080,
    path: '/main.js',
    // The configuration file from the guide sets the mode and the port. If this file does not exist, the command line sets mode and
    // port.
    command: '[ -e webpack.config.cjs ] || set -- --mode development --port 8080; node_modules/.bin/webpack serve "$@"',
    files: { 'src/index.js': 'document.body.append("seen")' },
    setting: 'webpack.config.cjs',
  },
  next: {
    port: 3000,
    path: '/',
    command: 'NEXT_TELEMETRY_DISABLED=1 node_modules/.bin/next dev --port 3000',
    files: {
      'app/layout.jsx': 'export default ({ children }) => <html><body>{children}</body></html>',
      'app/page.jsx': 'export default () => <p>seen</p>',
    },
    setting: 'next.config.mjs',
  },
  django: {
    port: 8000,
    path: '/',
    command: 'PYTHONPATH=../python python3 django_app.py runserver --noreload 127.0.0.1:8000',
    files: {
      'django_app.py': `
import importlib.util, sys
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.urls import path
given = {}
if importlib.util.find_spec('settings'):
    import settings as module
    given = {name: getattr(module, name) for name in dir(module) if name.isupper()}
middleware = ['django.middleware.common.CommonMiddleware', 'django.middleware.csrf.CsrfViewMiddleware']
settings.configure(DEBUG=True, SECRET_KEY='x', ROOT_URLCONF=__name__, MIDDLEWARE=middleware, **given)
urlpatterns = [path('', lambda request: HttpResponse('seen ' + get_token(request)))]
execute_from_command_line(sys.argv)
`,
    },
    setting: 'settings.py',
  },
  flask: {
    port: 5000,
    path: '/',
    command: 'PYTHONPATH=../python python3 flask_app.py',
    files: {
      'flask_app.py':
        "from flask import Flask\napp = Flask('app')\napp.route('/')(lambda: 'seen')\napp.run(port=5000)\n",
    },
  },
} satisfies Record<string, Server>

type Name = keyof typeof servers
const names = Object.keys(servers) as Name[]

const djangoPackages = ['python3-django', 'python3-asgiref', 'python3-sqlparse', 'python3-tz'] as const
const flaskPackages = [
  'flask',
  'werkzeug',
  'jinja2',
  'click',
  'itsdangerous',
  'markupsafe',
  'blinker',
  'colorama',
] as const

suite('the guide on development servers', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  const desk = mkdtempSync(join(tmpdir(), 'alcove-development-servers-'))

  const run = async (command: string) => {
    const { exitCode, result } = await sandbox.process.executeCommand(command, undefined, {}, 120)
    assert.equal(exitCode, 0, result)
  }
  /** Copies a local directory into the sandbox, as `target` in the user's home directory. */
  const copyIn = async (directory: string, target: string) => {
    const archive = join(desk, 'files.tar')
    await runCommand(['tar', '--create', '--file', archive, '--directory', directory, '.'], { timeoutMs: 120_000 })
    await sandbox.fs.uploadFile(archive, '/tmp/files.tar')
    await run(`mkdir -p ${target} && tar -xf /tmp/files.tar -C ${target} && rm /tmp/files.tar`)
  }

  before(async () => {
    const nodeModules = await installGuidePackages('development-servers')
    const packages = [...djangoPackages, ...flaskPackages.map((name) => `python3-${name}`)] as [string, ...string[]]
    const debian = await unpackDebianPackages('python-servers', packages)
    alcove = await platform()
    daytona = connectTo(alcove)
    sandbox = await daytona.create({ public: true, snapshot: 'daytona-medium' })
    await copyIn(nodeModules, 'site/node_modules')
    await copyIn(join(debian, 'usr/lib/python3/dist-packages'), 'python')
    for (const { files } of Object.values(servers))
      for (const [path, content] of Object.entries(files)) {
        await run(`mkdir -p ${dirname(`site/${path}`)}`)
        await sandbox.fs.uploadFile(Buffer.from(content), `site/${path}`)
      }
  })
  after(async () => {
    rmSync(desk, { recursive: true, force: true })
    await sandbox?.delete()
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const hostOf = (name: Name) => `${servers[name].port}-${sandbox.id}.sandboxes.example.net`
  const gate = () => new URL(sandbox.toolboxProxyUrl)
  /** Returns the headers that a reverse proxy with TLS sends to the gate when a page of the development server makes a call. */
  const headersFor = (name: Name) => ({
    host: hostOf(name),
    origin: `https://${hostOf(name)}`,
    referer: `https://${hostOf(name)}/`,
    'x-forwarded-proto': 'https',
  })
  const call = async (
    name: Name,
    path = '/',
    more: { method?: string; headers?: Record<string, string>; body?: string } = {},
  ) => {
    const { hostname, port } = gate()
    const headers = { ...headersFor(name), ...more.headers }
    const outgoing = request({ hostname, port, path, method: more.method ?? 'GET', headers, timeout: 60_000 })
    outgoing.on('timeout', () => outgoing.destroy(new Error(`${name} did not answer`)))
    outgoing.end(more.body)
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    return { status: answer.statusCode, cookie: answer.headers['set-cookie']?.[0] ?? '', text: await text(answer) }
  }
  /** Connects as a development server's hot reload script does. Returns the first message, or why no message came. */
  const hotReload = async (name: Name, path: string, protocols: string[] = []) => {
    const socket = new WebSocket(`ws://${gate().host}${path}`, protocols, { headers: headersFor(name) })
    try {
      const first = once(socket, 'message').then(([data]) => String(data))
      const closed = once(socket, 'close').then(() => 'closed')
      return await Promise.race([first, closed])
    } catch (error) {
      return String(error)
    } finally {
      socket.terminate()
    }
  }

  const start = async (name: Name) => {
    await sandbox.process.createSession(name)
    const command = `cd ~/site && ${servers[name].command}`
    await sandbox.process.executeSessionCommand(name, { command, runAsync: true })
    await until(`${name} listens`, async () => (await call(name)).status !== 502, 120)
  }
  const startAll = () => Promise.all(names.map(start))
  const stopAll = () =>
    Promise.all(
      names.map(async (name) => {
        await sandbox.process.deleteSession(name)
        await until(`${name} is gone`, async () => (await call(name)).status === 502)
      }),
    )

  const checkThatAllAnswer = async () => {
    const seen = await Promise.all(names.map(async (name) => [name, (await call(name, servers[name].path)).status]))
    assert.deepEqual(Object.fromEntries(seen), { vite: 200, webpack: 200, next: 200, django: 200, flask: 200 })

    const [, token = ''] = /wsToken = "([^"]+)"/.exec((await call('vite', '/@vite/client')).text) ?? []
    assert.match(await hotReload('vite', `/?token=${token}`, ['vite-hmr']), /"connected"/)
    assert.match(await hotReload('webpack', '/ws'), /"type":"(?!error)/)
    const [script = ''] = /\/_next\/static\/[^"]+\.js/.exec((await call('next')).text) ?? []
    assert.equal((await call('next', script)).status, 200)
    assert.match(await hotReload('next', '/_next/hmr?id=1'), /"type"/)

    const form = await call('django')
    const [cookie = ''] = form.cookie.split(';')
    const [, csrf = ''] = /seen (\w+)/.exec(form.text) ?? []
    const headers = { cookie, 'content-type': 'application/x-www-form-urlencoded' }
    const sent = await call('django', '/', { method: 'POST', headers, body: `csrfmiddlewaretoken=${csrf}` })
    assert.equal(sent.status, 200, sent.text)
  }

  test('most development servers refuse a preview’s host name, with the guide’s answers; Flask accepts it', async () => {
    await startAll()
    const answers = await Promise.all(names.map(async (name) => [name, await call(name)] as const))
    const { vite, webpack, next, django, flask } = Object.fromEntries(answers) as Record<Name, (typeof answers)[0][1]>
    assert.deepEqual([vite.status, vite.text.startsWith('Blocked request')], [403, true])
    assert.deepEqual([webpack.status, webpack.text], [403, 'Invalid Host header'])
    assert.deepEqual([django.status, /DisallowedHost/.test(django.text)], [400, true])
    assert.deepEqual([flask.status, flask.text], [200, 'seen'])
    const [script = ''] = /\/_next\/static\/[^"]+\.js/.exec(next.text) ?? []
    const asset = await call('next', script)
    assert.deepEqual([next.status, asset.status, asset.text], [200, 403, 'Unauthorized'])
    assert.doesNotMatch(await hotReload('next', '/_next/hmr?id=1'), /"type"/)
  })

  test('hot reload and forms of development servers work in previews of a sandbox labelled `preview-host`', async () => {
    await sandbox.setLabels({ 'preview-host': 'localhost' })
    await until('the label is in force', async () => (await call('vite')).status === 200)
    await checkThatAllAnswer()
    await sandbox.setLabels({})
    await until('the label is gone', async () => (await call('vite')).status === 403)
  })

  test('with the guide’s settings, development servers work although the sandbox has no label `preview-host`', async () => {
    await stopAll()
    const settings = Object.values<Server>(servers).flatMap(({ setting }) => setting ?? [])
    assert.deepEqual([...programs.keys()].sort(), settings.sort())
    for (const [name, content] of programs) await sandbox.fs.uploadFile(Buffer.from(content), `site/${name}`)
    await startAll()
    await checkThatAllAnswer()
  })
})
