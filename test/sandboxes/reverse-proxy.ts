// Runs Debian's nginx and Caddy for tests, with the configuration of a guide, each on loopback ports of its own.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { until } from './box.ts'
import { freePorts } from './free-ports.ts'
import { unpackDebianPackages } from './guide-packages.ts'

type Call = { host: string; path: string; method?: string; headers?: Record<string, string>; body?: string }

export type ReverseProxy = AsyncDisposable & {
  port: number
  /** TLS options that make Node's clients accept the proxy's certificate. */
  trust: { ca?: Buffer; rejectUnauthorized?: boolean }
  /** Sends a call to the proxy at 127.0.0.1, with `host` in the header `Host` and in the TLS handshake. */
  call: (call: Call) => Promise<IncomingMessage>
}

type Program = { argv: [string, ...string[]]; directory: string; port: number; trust: ReverseProxy['trust'] }

const callerOf =
  ({ port, trust }: Program): ReverseProxy['call'] =>
  async ({ host, path, method = 'GET', headers = {}, body }) => {
    const to = { host: '127.0.0.1', port, servername: host, ...trust, method, path, headers: { host, ...headers } }
    const outgoing = request({ ...to, timeout: 30_000, agent: false })
    outgoing.on('timeout', () => outgoing.destroy(new Error(`${host}${path} did not answer`)))
    outgoing.end(body)
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    return answer
  }

const start = async (program: Program, host: string): Promise<ReverseProxy> => {
  const { argv, directory, port, trust } = program
  const [command, ...args] = argv
  const env = { ...process.env, XDG_DATA_HOME: join(directory, 'data'), XDG_CONFIG_HOME: join(directory, 'config') }
  const child = spawn(command, args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => (output = `${output}${chunk}`.slice(-2000)))
  const ended = once(child, 'close')
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
  }
  const call = callerOf(program)
  const isReady = () =>
    call({ host, path: '/api/health' }).then(
      (answer) => answer.resume().statusCode === 200,
      () => false,
    )
  try {
    await until(`${command} answers`, async () => {
      assert.ok(child.exitCode === null && child.signalCode === null, output)
      return isReady()
    })
  } catch (error) {
    await stop()
    throw new Error(`${command} printed:\n${output}`, { cause: error })
  }
  return { port, trust, call, [Symbol.asyncDispose]: stop }
}

/**
 * Starts nginx. `host`: the API's host name in the configuration. `certificate`: path of the certificate for TLS clients to trust.
 */
export const startNginx = async (directory: string, host: string, configuration: string, certificate: string) => {
  const files = await unpackDebianPackages('nginx', ['nginx'])
  const port = await freePorts(1)
  writeFileSync(join(directory, 'site.conf'), configuration.replaceAll(/listen \d+/g, `listen 127.0.0.1:${port}`))
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${directory}/${kind};`,
  )
  const http = `access_log off; ${paths.join(' ')} include ${directory}/site.conf;`
  writeFileSync(join(directory, 'nginx.conf'), `daemon off; pid ${directory}/pid; events {} http { ${http} }`)
  const argv: Program['argv'] = [join(files, 'usr/sbin/nginx'), '-p', directory, '-e', 'stderr', '-c', 'nginx.conf']
  return start({ argv, directory, port, trust: { ca: readFileSync(certificate) } }, host)
}

/** Starts Caddy, which makes its certificates itself instead of requesting them from an authority on the Internet. */
export const startCaddy = async (directory: string, host: string, configuration: string) => {
  const files = await unpackDebianPackages('caddy', ['caddy'])
  const port = await freePorts(1)
  const global = [
    'admin off',
    'local_certs',
    'skip_install_trust',
    'auto_https disable_redirects',
    `https_port ${port}`,
  ]
  const text = `{\n${global.join('\n')}\ndefault_bind 127.0.0.1\n}\n${configuration}`
  writeFileSync(join(directory, 'Caddyfile'), text)
  const argv: Program['argv'] = [join(files, 'usr/bin/caddy'), 'run', '--config', 'Caddyfile', '--adapter', 'caddyfile']
  return start({ argv, directory, port, trust: { rejectUnauthorized: false } }, host)
}
