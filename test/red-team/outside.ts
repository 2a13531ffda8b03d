// Attacks from outside of sandboxes: by callers, by visitors of previews, by builders of images, and through a captured program of
// the server.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import ssh2 from 'ssh2'
import { users } from '#src/kit/confined.ts'
import type { Platform } from '../sandboxes/harness.ts'
import { type Attack, notHeld, unless } from './attack.ts'

type HttpAnswer = { status: number; text: string }

/** Sends a request to the gate or to control on this machine. The host name in `url` is only sent as the header `Host`. */
const ask = (url: string, headers: Record<string, string> = {}, method = 'GET', body?: string): Promise<HttpAnswer> =>
  new Promise((resolve, reject) => {
    const { port, pathname, search, host } = new URL(url)
    const at = { host: '127.0.0.1', port, path: `${pathname}${search}`, method, headers: { host, ...headers } }
    const call = request(at, (reply) => {
      let text = ''
      reply.setEncoding('utf8').on('data', (piece: string) => {
        text = (text + piece).slice(0, 65_536)
      })
      reply.once('end', () => resolve({ status: reply.statusCode ?? 0, text }))
      reply.once('error', reject)
    })
    call.setTimeout(15_000, () => call.destroy(new Error('no answer')))
    call.once('error', reject)
    call.end(body)
  })

const wrongKeys = ['', 'dtn_', `dtn_${'0'.repeat(64)}`, "' or 1=1 --", 'a'.repeat(4000)]

/** Calls a URL without a key and with several wrong keys. Returns a text for each answer that is not a refusal. */
const letIn = async (url: string): Promise<string[]> => {
  const answers = await Promise.all(
    [{}, ...wrongKeys.map((key) => ({ authorization: `Bearer ${key}` }))].map((headers) => ask(url, headers)),
  )
  return answers.filter(({ status }) => status < 400 || status >= 500).map(({ status }) => `an answer ${status}`)
}

type Confinement = { name: string; pid: number; uid: number }

const placesOf = (data: string) => [`${data}/secrets`, `${data}/log`, `${data}/runner`, '/root', '/home', '/var/log']

/** Returns the privileges that a program of the server must not have but has, and the paths that it must not see but sees. */
export const tooMuchOf = ({ name, pid, uid }: Confinement, data: string): string[] => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const wants: [RegExp, string][] = [
    [new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, 'm'), 'another user'],
    [/^CapBnd:\t0+$/m, 'capabilities to be gained'],
    [/^CapEff:\t0+$/m, 'capabilities'],
    [/^NoNewPrivs:\t1$/m, 'a way to new privileges'],
    [/^Seccomp:\t2$/m, 'no filter'],
  ]
  const found = wants.filter(([shape]) => !shape.test(status)).map(([, what]) => `${name}: ${what}`)
  const look = `for path in ${placesOf(data).join(' ')}; do test ! -e $path || echo $path; done`
  const enter = ['-t', `${pid}`, '--mount', '--root', '--wd=/', '--', 'sh', '-c', look]
  const seen = spawnSync('nsenter', enter, { encoding: 'utf8', timeout: 10_000 })
  if (seen.status !== 0) throw new Error(`nobody can look into ${name}`)
  return [
    ...found,
    ...seen.stdout
      .split('\n')
      .filter(Boolean)
      .map((path) => `${name} sees ${path}`),
  ]
}

/** Signs in to the SSH gateway. Returns the client, or undefined if the gateway refused the sign-in. */
const signIn = (port: number, username: string) =>
  new Promise<ssh2.Client | undefined>((resolve) => {
    const client = new ssh2.Client()
    client.once('ready', () => resolve(client)).on('error', () => resolve(undefined))
    client.connect({ host: '127.0.0.1', port, username, readyTimeout: 15_000 })
  })

const reaches = (client: ssh2.Client, host: string, port: number) =>
  new Promise<boolean>((resolve) => {
    client.forwardOut('127.0.0.1', 1, host, port, (error) => resolve(!error))
  })

const programs = ['postgres', 'control', 'gate', 'ssh-gateway'] as const

const confinements = (platform: Platform): Promise<Confinement[]> =>
  Promise.all(programs.map(async (name) => ({ name, pid: await platform.pidOf(name), uid: users[name] })))

const secretWord = 'only-the-owner-reads-this'

export const attacksFromOutside: readonly Attack[] = [
  {
    name: 'calls without a key, and with wrong ones',
    boundary: 'Internet → API',
    try: async ({ platform }) => unless(await letIn(`${platform.url}/api/sandbox`), 'all are refused'),
  },
  {
    name: 'bodies and paths that no route expects',
    boundary: 'Internet → API',
    try: async ({ platform }) => {
      const json = { authorization: `Bearer ${platform.key}`, 'content-type': 'application/json' }
      const bodies = [
        '{',
        '[]',
        '{"cpu":1e99}',
        `{"name":"${'x'.repeat(200_000)}"}`,
        '{"__proto__":{"state":"started"},"cpu":"1"}',
      ]
      const url = `${platform.url}/api/sandbox`
      const answers = await Promise.all([
        ...bodies.map((body) => ask(url, json, 'POST', body)),
        ask(`${url}/..%2f..%2fsecrets`, json),
        ask(`${url}/%00`, json),
      ])
      const wrong = answers.filter(({ status }) => status < 400 || status >= 500)
      return unless(
        wrong.map(({ status }) => `an answer ${status}`),
        `${answers.length} are refused, and none is an error of ours`,
      )
    },
  },
  {
    name: 'what is left to somebody who has taken over a program',
    boundary: 'API → host',
    try: async ({ platform }) => {
      const found = (await confinements(platform)).flatMap((each) => tooMuchOf(each, platform.data))
      return unless(found, 'no rights, no keys and no files of others')
    },
  },
  {
    name: 'a toolbox without a key, with wrong ones, and of a sandbox that is not there',
    boundary: 'toolbox caller → toolbox',
    try: async ({ platform, box }) => {
      const base = String(box.record['toolboxProxyUrl'])
      const got = await letIn(`${base}/${box.id}/files?path=/`)
      const other = await ask(`${base}/00000000-0000-4000-8000-000000000000/files?path=/`, {
        authorization: `Bearer ${platform.key}`,
      })
      return unless([...got, ...(other.status === 404 ? [] : [`an answer ${other.status}`])], 'all are refused')
    },
  },
  {
    name: 'SSH without a token, and a token for what it does not open',
    boundary: 'SSH client → sandbox',
    try: async ({ platform, box, root }) => {
      const port = Number(new URL(platform.url).port) + 2
      const made = await platform.api('POST', `/sandbox/${box.id}/ssh-access`)
      if (made.status !== 200) throw new Error(`no token: ${made.status}`)
      const token = String(made.body['token'])
      const owner = await signIn(port, token)
      if (owner === undefined) throw new Error('not even the token opens the sandbox')
      const beyond = await Promise.all(['198.51.100.1', '0.0.0.0'].map((host) => reaches(owner, host, 22)))
      owner.destroy()
      const names = ['root', '', platform.key, box.id, `ssh_${'0'.repeat(32)}`, `${token}0`]
      const strangers = await Promise.all(names.map((name) => signIn(port, name)))
      const gate = `http://127.0.0.1:${Number(new URL(platform.url).port) + 1}/toolbox`
      const bearer = { authorization: `Bearer ${token}` }
      const calls = await Promise.all([
        ask(`${gate}/${root.id}/ssh/command`, bearer),
        ask(`${gate}/${box.id}/process/pty`, bearer),
        ask(`${platform.url}/api/sandbox`, bearer),
        ask(`${gate}/${box.id}/ssh/command`, { authorization: `Bearer ${platform.key}` }),
      ])
      await platform.api('DELETE', `/sandbox/${box.id}/ssh-access`)
      const late = await signIn(port, token)
      for (const client of [...strangers, late]) client?.destroy()
      return unless(
        [
          ...strangers.flatMap((client, index) => (client ? [`the name ${names[index]}`] : [])),
          ...(late ? ['a revoked token'] : []),
          ...beyond.flatMap((isReached) => (isReached ? ['a host beyond the sandbox'] : [])),
          ...calls.filter(({ status }) => status !== 401).map(({ status }) => `an answer ${status}`),
        ],
        'a token opens its own sandbox, and nothing else opens one',
      )
    },
  },
  {
    name: 'an image reference that leads to the host’s own network',
    boundary: 'whoever builds an image → host',
    try: async ({ platform }) => {
      let calls = 0
      const registry = createServer((socket) => {
        calls += 1
        socket.destroy()
      })
      await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
      const { port } = registry.address() as { port: number }
      const name = `red-team-${process.pid}`
      try {
        const made = await platform.api('POST', '/snapshots', { name, imageName: `127.0.0.1:${port}/some/image:1` })
        const id = String(made.body['id'] ?? name)
        for (let state = ''; made.status < 400 && !/error|failed|active/.test(state); await pause(250))
          state = String((await platform.api('GET', `/snapshots/${id}`)).body['state'] ?? 'error')
        if (made.status < 400) await platform.api('DELETE', `/snapshots/${id}`)
        return unless(calls === 0 ? [] : [`${calls} connections to 127.0.0.1`], 'nothing of the host was asked')
      } finally {
        registry.close()
      }
    },
  },
  {
    name: 'the value of a secret, inside as root and by every call that knows the secret',
    boundary: 'sandbox → values of its secrets',
    try: async ({ platform, root }) => {
      const value = ['red', 'team', 'value', process.pid].join('-')
      const secret = { name: `red-team-${process.pid}`, value, hosts: ['secret.invalid'] }
      const { status, body } = await platform.api('POST', '/secret', secret)
      if (status !== 201) throw new Error(`no secret: ${status}`)
      const id = String(body['id'])
      try {
        const mount = { secrets: [{ RED_TEAM: secret.name }] }
        const mounted = await platform.api('PUT', `/sandbox/${root.id}/secrets`, mount)
        if (mounted.status !== 200) throw new Error(`not mounted: ${mounted.status}`)
        const paths = ['/secret', '/secret/paginated', `/secret/${id}`, `/sandbox/${root.id}`]
        const refused = ['/runners/secrets', '/sandbox/for-runner', `/sandbox/${root.id}/secrets`]
        const answers = await Promise.all([...paths, ...refused].map((path) => platform.api('GET', path)))
        const told = answers.filter((answer) => JSON.stringify(answer.body).includes(value)).length
        // The shell joins the searched text from two parts, so that the search does not find its own command.
        const search = `n=team-value; env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; grep -rs "red-$n" /etc /run /tmp /root /home`
        const { result } = await root.try(search)
        if (!result.includes('RED_TEAM=alcove_secret_')) throw new Error('the placeholder is not inside')
        const found = [
          ...(result.includes(value) ? ['the value is inside'] : []),
          ...(told > 0 ? ['it is answered'] : []),
        ]
        return unless(found, 'the sandbox has a placeholder, and no call answers the value')
      } finally {
        await platform.api('DELETE', `/secret/${id}`)
      }
    },
  },
  {
    name: 'a private preview without its token, and the token inside',
    boundary: 'preview visitor → server inside',
    try: async ({ platform, box }) => {
      const server = `import http.server
class Echo(http.server.BaseHTTPRequestHandler):
  def do_GET(self):
    self.send_response(200); self.end_headers(); self.wfile.write(("${secretWord} " + str(self.headers)).encode())
http.server.HTTPServer(("0.0.0.0", 8098), Echo).serve_forever()`
      await box.run(`printf %s ${Buffer.from(server).toString('base64')} | base64 -d > /tmp/red.py`)
      await box.run('setsid python3 /tmp/red.py >/dev/null 2>&1 & for i in 1 2 3 4 5 6; do sleep 0.5; done')
      const { status, body } = await platform.api('GET', `/sandbox/${box.id}/ports/8098/preview-url`)
      if (status !== 200) throw new Error(`no address of the preview: ${status}`)
      const [url, token] = [String(body['url']), String(body['token'])]
      const open = await ask(url, { 'x-daytona-preview-token': token })
      if (!open.text.includes(secretWord)) throw new Error(`the preview does not answer its owner: ${open.status}`)
      if (open.text.includes(token)) return notHeld('the server inside reads the token')
      const closed = await Promise.all([ask(url), ask(url, { 'x-daytona-preview-token': 'wrong' })])
      return unless(
        closed.filter(({ text }) => text.includes(secretWord)).map(() => 'the page'),
        'strangers see nothing',
      )
    },
  },
]
