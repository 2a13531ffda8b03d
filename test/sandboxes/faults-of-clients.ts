// Mistakes of clients, such as an incomplete call, or bytes of no protocol. Tests make each mistake in calls to a real server.
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { WebSocket } from 'ws'
import { type Box, boxOf, until } from './box.ts'
import type { Platform } from './harness.ts'

type Fault = readonly [what: string, commit: () => Promise<unknown>]

/** Waits until the connection has closed, for whatever reason. */
const closing = (socket: Duplex | WebSocket) => new Promise((resolve) => socket.once('close', resolve))

/** Sends `bytes` and waits at most 100 ms for the first bytes of an answer. Then closes or resets the connection. */
const say = async (port: number, bytes: string | Buffer, how: 'close' | 'reset' = 'close') => {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  const closed = closing(socket)
  const heard = new Promise((resolve) => socket.once('data', resolve))
  socket.write(bytes)
  await Promise.race([heard, closed, new Promise((resolve) => setTimeout(resolve, 100))])
  if (how === 'reset') socket.resetAndDestroy()
  else socket.resume().end()
  await closed
}

const headOf = (line: string, headers: Record<string, string | number>) =>
  `${line} HTTP/1.1\r\n${Object.entries({ Host: 'x', ...headers })
    .map((header) => header.join(': '))
    .join('\r\n')}\r\n\r\n`

export const faultsOf = (alcove: Platform, box: Box): readonly Fault[] => {
  const port = Number(new URL(alcove.url).port)
  const gate = port + 1
  const known = { Authorization: `Bearer ${alcove.key}` }
  const json = { 'Content-Type': 'application/json' }
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const parts = { 'Content-Type': 'multipart/form-data; boundary=b' }
  const long = { 'Content-Length': 1000 }
  const upgrading = { Connection: 'Upgrade', Upgrade: 'websocket' }
  const handshake = { ...upgrading, 'Sec-WebSocket-Version': 13, 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' }
  const inside = `/toolbox/${box.id}`
  const name = `${inside}/files/upload?path=/tmp/cut`

  const cutOff = (how: 'close' | 'reset'): readonly Fault[] =>
    (
      [
        ['a form of OpenID', port, '/oidc/token', form],
        ['a form of a device', port, '/oidc/device/auth', form],
        ['a sandbox of nobody', port, '/api/sandbox', json],
        ['a sandbox', port, '/api/sandbox', { ...json, ...known }],
        ['what has no route', port, '/nowhere', { ...json, ...known }],
        ['a command of nobody', gate, `${inside}/process/execute`, json],
        ['a command', gate, `${inside}/process/execute`, { ...json, ...known }],
        ['an upload', gate, name, { ...parts, ...known }],
        ['several files', gate, `${inside}/files/bulk-upload`, { ...parts, ...known }],
        ['code', gate, `${inside}/process/code-run`, { ...json, ...known }],
        ['an object', gate, '/daytona-volume-builds/x/y/context.tar', { ...known }],
        ['a preview', gate, `/preview/${box.id}/3000/`, { ...json, ...known }],
      ] as const
    ).map(([what, at, path, headers]) => [
      `${what}, cut off in its body by a ${how}`,
      () => say(at, `${headOf(`POST ${path}`, { ...headers, ...long })}{"a`, how),
    ])

  const calls = async (line: string, headers: Record<string, string | number>, body = '') => {
    for (const at of [port, gate]) {
      await say(at, headOf(line, { ...headers, 'Content-Length': Buffer.byteLength(body), Connection: 'close' }) + body)
    }
  }
  const post = (path: string, body: string, headers: Record<string, string> = json) =>
    calls(`POST ${path}`, { ...known, ...headers }, body)

  const socket = async (path: string, ...frames: readonly (string | Buffer)[]) => {
    const ws = new WebSocket(`ws://127.0.0.1:${gate}${inside}${path}`, { headers: known })
    ws.on('error', () => undefined)
    const closed = closing(ws)
    ws.once('open', () => {
      for (const frame of frames) ws.send(frame)
      setTimeout(() => ws.terminate(), 200).unref()
    })
    await closed
  }
  const rawSocket = (path: string, bytes: Buffer) =>
    say(gate, Buffer.concat([Buffer.from(headOf(`GET ${inside}${path}`, { ...known, ...handshake })), bytes]), 'reset')

  const http: readonly Fault[] = [
    ['TLS', async () => [await tls(port), await tls(gate)]],
    ...[
      'rubbish\r\n\r\n',
      'GET /\0 HTTP/1.1\r\n\r\n',
      'GET / HTTP/9.9\r\nA: b\r\n\r\n',
      '\r\n\r\n\0\0',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    ].map((bytes): Fault => [JSON.stringify(bytes), async () => [await say(port, bytes), await say(gate, bytes)]]),
    ['two lengths', () => calls('POST /api/sandbox', { ...json, 'Transfer-Encoding': 'chunked' }, '0\r\n\r\n')],
    [
      'a bad chunk',
      () => say(port, `${headOf('POST /api/sandbox', { ...known, ...json, 'Transfer-Encoding': 'chunked' })}zz\r\n`),
    ],
    [
      'a bad chunk to a toolbox',
      () =>
        say(
          gate,
          `${headOf(`POST ${inside}/process/execute`, { ...known, ...json, 'Transfer-Encoding': 'chunked' })}zz\r\n`,
        ),
    ],
    [
      'a chunk cut off in a preview',
      () =>
        say(
          gate,
          `${headOf(`POST /preview/${box.id}/3000/`, { ...known, 'Transfer-Encoding': 'chunked' })}5\r\nab`,
          'reset',
        ),
    ],
    ['a head of 100 KB', () => calls('GET /api/sandbox', { ...known, A: 'x'.repeat(100_000) })],
    ['a bad path', () => calls('GET /api/sandbox/%zz/..%2f', known)],
    ['a preview that nothing serves', () => calls(`GET /preview/${box.id}/3999/`, known)],
    ['a preview that is no HTTP', () => calls(`GET /preview/${box.id}/3001/`, known)],
    ['a preview that hangs up', () => calls(`GET /preview/${box.id}/3002/`, known)],
    [
      'an upgrade nobody understands',
      () => calls(`GET ${inside}/process/pty/none/connect`, { ...known, Connection: 'Upgrade', Upgrade: 'h2c' }),
    ],
    ['an upgrade of what is none', () => calls('GET /api/sandbox', { ...known, ...handshake })],
    ['an upgrade without a credential', () => calls(`GET ${inside}/process/pty/p/connect`, handshake)],
    ['an upgrade without a key', () => calls('GET /socket.io/?EIO=4&transport=websocket', upgrading)],
    [
      'an upgrade of a preview that nothing serves',
      () => calls(`GET /preview/${box.id}/3999/`, { ...known, ...handshake }),
    ],
  ]

  const bodies: readonly Fault[] = [
    ...[
      '{',
      'null',
      '[]',
      '{"name":"\\u0000"}',
      '{"cpu":1e99}',
      '{"labels":{"__proto__":{}}}',
      '{"user":"nobody-there"}',
      '{"snapshot":"none"}',
    ].map((body): Fault => [`the sandbox ${body}`, () => post('/api/sandbox', body)]),
    ...[
      '{',
      '{"command":"\\u0000"}',
      '{"command":"exit 1","cwd":"/none"}',
      '{"command":"sleep 9","timeout":1}',
      '{"command":"kill -9 $$"}',
    ].map((body): Fault => [`the command ${body}`, () => post(`${inside}/process/execute`, body)]),
    ['a body that is too large', () => post('/api/api-keys', JSON.stringify({ name: 'x'.repeat(2_000_000) }))],
    ['a wrong type', () => post('/api/sandbox', '<a/>', { 'Content-Type': 'application/xml' })],
    ...[
      '--b\r\n',
      '--c--',
      '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nabc',
      '--b\r\n\0\0\0\r\n\r\n--b--',
    ].map((body): Fault => [`the form ${JSON.stringify(body)}`, () => post(name, body, parts)]),
    [
      'a form without a boundary',
      () => post(`${inside}/files/bulk-upload`, 'x', { 'Content-Type': 'multipart/form-data' }),
    ],
    [
      'an upload to a directory',
      () =>
        post(
          `${inside}/files/upload?path=/tmp`,
          '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc\r\n--b--\r\n',
          parts,
        ),
    ],
    ['a download of what is no file', () => calls(`GET ${inside}/files/download?path=/proc/self/mem`, known)],
    ['a download cut off', () => say(gate, headOf(`GET ${inside}/files/download?path=/tmp/large`, known), 'reset')],
    [
      'git of what is no repository',
      () => post(`${inside}/git/clone`, '{"url":"http://127.0.0.1:1/none","path":"/tmp/none"}'),
    ],
    [
      'a language server that is none',
      () => post(`${inside}/lsp/start`, '{"languageId":"klingon","pathToProject":"/"}'),
    ],
  ]

  const sockets: readonly Fault[] = [
    ['no JSON to the interpreter', () => socket('/process/interpreter/execute', 'rubbish')],
    ['bytes to the interpreter', () => socket('/process/interpreter/execute', Buffer.from([0, 255]))],
    ['11 MB to the interpreter', () => socket('/process/interpreter/execute', 'x'.repeat(11_000_000))],
    ['no terminal', () => socket('/process/pty/none/connect', 'x')],
    ['a frame that is not masked', () => rawSocket('/process/interpreter/execute', Buffer.from([0x81, 1, 97]))],
    ['a reserved frame', () => rawSocket('/process/interpreter/execute', Buffer.from([0xff, 0x80, 0, 0, 0, 0]))],
    [
      'a frame of 2^63 bytes',
      () =>
        rawSocket('/process/interpreter/execute', Buffer.from([0x82, 0xff, 127, 255, 255, 255, 255, 255, 255, 255])),
    ],
    [
      'bytes that are no frame, of an event socket',
      () =>
        say(
          port,
          Buffer.concat([
            Buffer.from(headOf('GET /socket.io/?EIO=4&transport=websocket', handshake)),
            Buffer.from([255, 255, 255]),
          ]),
        ),
    ],
    [
      'packets that are none, of an event socket',
      () =>
        say(
          port,
          Buffer.concat([
            Buffer.from(headOf('GET /socket.io/?EIO=4&transport=websocket', handshake)),
            Buffer.from([0x81, 0x83, 0, 0, 0, 0, 57, 57, 57]),
          ]),
        ),
    ],
  ]

  const tokens: readonly Fault[] = [
    ...[
      'Bearer',
      'Bearer dtn_none',
      'Bearer a.b.c',
      'Basic eDp5',
      'Bearer eyJhbGciOiJub25lIn0.eyJleHAiOjF9.',
      `Bearer ${'x'.repeat(9000)}`,
    ].map(
      (authorization): Fault => [
        `the credential ${authorization.slice(0, 60)}`,
        async () => {
          await calls('GET /api/sandbox', { Authorization: authorization })
          await calls(`GET ${inside}/files?path=/`, { Authorization: authorization })
          await calls(`GET /preview/${box.id}/3000/`, { Authorization: authorization })
        },
      ],
    ),
    ...[
      'grant_type=rubbish',
      'grant_type=authorization_code&code=x&client_id=none',
      'a=%zz',
      'grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=x',
      '\0',
    ].map((body): Fault => [`OpenID with ${JSON.stringify(body)}`, () => post('/oidc/token', body, form)]),
    ...[
      'auth?client_id=none',
      'auth?client_id=alcove-dashboard&redirect_uri=javascript:x&response_type=rubbish',
      'interaction/none',
      'device?user_code=x',
      'me',
      'session/end?id_token_hint=a.b.c',
    ].map((path): Fault => [`OpenID's ${path}`, () => calls(`GET /oidc/${path}`, {})]),
    ['single sign-on of nobody', () => calls('GET /api/sso/callback?state=none&code=none', {})],
    ['a webhook portal of nobody', () => calls('GET /api/webhooks/portal/rubbish', {})],
    ...['PUT', 'GET', 'POST', 'DELETE', 'BREW'].map(
      (method): Fault => [
        `${method} to the object storage`,
        () =>
          calls(
            `${method} /daytona-volume-builds/a/b?uploads&partNumber=zz`,
            {
              Authorization: 'AWS4-HMAC-SHA256 Credential=a/b/c/s3/aws4_request, SignedHeaders=host, Signature=zz',
              'X-Amz-Date': 'never',
            },
            '<',
          ),
      ],
    ),
  ]

  const linkInVolume = async () => {
    const name = `link-${Date.now()}`
    const { body: volume } = await alcove.api('POST', '/volumes', { name })
    const start = async (subpath?: string) =>
      (await alcove.api('POST', '/sandbox', { volumes: [{ volumeId: name, mountPath: '/data', subpath }] })).body
    const first = await start()
    await boxOf(alcove, first).run('ln -s / /data/link')
    const failed = await start('link')
    for (const { id } of [first, failed]) await alcove.api('DELETE', `/sandbox/${id}`)
    await until(
      'the volume is deleted',
      async () => (await alcove.api('DELETE', `/volumes/${volume['id']}`)).status !== 409,
    )
  }

  const own: readonly Fault[] = [
    ['a subpath that is a link', linkInVolume],
    [
      'nonsense to the resolver',
      () =>
        box.try(
          'for i in 1 2 3; do head -c 200 /dev/urandom > /dev/udp/$(awk "/nameserver/{print \\$2; exit}" /etc/resolv.conf)/53; done',
        ),
    ],
    ['a closed address', () => box.try('curl -sm 2 http://10.0.0.1; curl -sm 2 http://169.254.169.254')],
    ['all processes killed', () => box.try('kill -9 -1')],
    ['memory', () => box.try('tail /dev/zero')],
    [
      'an image of no registry',
      () => alcove.api('POST', '/snapshots', { name: `none-${Date.now()}`, imageName: '127.0.0.1:1/none:1' }),
    ],
    [
      'a Dockerfile that is none',
      () => alcove.api('POST', '/sandbox', { buildInfo: { dockerfileContent: 'RUBBISH' } }),
    ],
  ]

  return [...cutOff('close'), ...cutOff('reset'), ...http, ...bodies, ...sockets, ...tokens, ...own]
}

const tls = async (port: number) => {
  const socket = connectTls({ port, host: '127.0.0.1' })
  socket.on('error', () => undefined)
  await closing(socket)
}
