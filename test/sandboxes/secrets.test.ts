// Secrets on a real server, with the public SDK and HTTPS clients in a sandbox. The server runs in a network namespace with a
// simulated Internet of HTTPS servers.
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { runCommand } from '#src/kit/run-command.ts'
import { isPrivateHost, runOnPrivateHost } from '#src/runner/network/testing/private-host.ts'
import { trustFiles } from '#src/wire/secrets.ts'
import { needsRoot } from '#test/needs-root.ts'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'
import { type SimulatedInternet, simulateInternet } from './simulated-internet.ts'

const value = 'the-real-value'
const web = { api: '198.51.100.7', other: '198.51.100.8' }
const root = join(import.meta.dirname, '../..')
const program = join(root, 'src/egress/testing/far-server-program.ts')

if (!isPrivateHost) {
  test('real HTTP clients in a sandbox send secrets to hosts of a simulated Internet', { skip: needsRoot }, () =>
    runOnPrivateHost(import.meta.filename, 420_000),
  )
} else {
  suite('secrets of sandboxes', () => {
    let scratch: string
    let internet: SimulatedInternet
    let alcove: Platform
    let daytona: Daytona
    let sandbox: Sandbox
    let secretId: string
    let placeholder: string

    const startServers = async () => {
      const servers = [
        { ...internet.certify(['api.test']), address: web.api },
        { ...internet.certify(['other.test']), address: web.other },
      ]
      await internet.start(program, servers)
    }

    const run = async (command: string, more: { in?: Sandbox; env?: Record<string, string> } = {}) => {
      const { result, exitCode } = await (more.in ?? sandbox).process.executeCommand(command, undefined, more.env, 60)
      return { text: String(result).trim(), exitCode }
    }
    const say = async (command: string, more?: { in?: Sandbox; env?: Record<string, string> }) => {
      const { text, exitCode } = await run(command, more)
      assert.equal(exitCode, 0, text)
      return text
    }
    const authorization = 'curl -sS https://api.test/ -H "Authorization: Bearer $TOKEN"'
    const sentBy = async (box: Sandbox) => /"(Bearer [^"]*)"/.exec((await run(authorization, { in: box })).text)?.[1]

    before(async () => {
      scratch = await mkdtemp(join(tmpdir(), 'alcove-secrets-'))
      internet = await simulateInternet(scratch, { 'api.test': web.api, 'other.test': web.other })
      await startServers()
      alcove = await platform({ own: true, env: { ALCOVE_OPEN_NETWORKS: '198.51.100.0/24' } })
      daytona = connectTo(alcove)
    })
    after(async () => {
      await daytona?.[Symbol.asyncDispose]()
      await alcove?.[Symbol.asyncDispose]()
      await internet?.[Symbol.asyncDispose]()
      await rm(scratch, { recursive: true, force: true })
    })

    test('a sandbox gets a variable with a secret’s placeholder; none of its files or processes has the value', async () => {
      const secret = await daytona.secret.create({ name: 'api-key', value, hosts: ['api.test'] })
      secretId = secret.id
      placeholder = secret.placeholder
      assert.ok(!JSON.stringify(secret).includes(value))
      sandbox = await daytona.create({ secrets: { TOKEN: 'api-key' } })
      assert.equal(await say('echo $TOKEN'), placeholder)
      const found = await say(
        `sudo grep -rl ${value} /etc /run /home /root /tmp /proc/[0-9]*/environ 2>/dev/null | head; true`,
      )
      assert.equal(found, '')
    })

    for (const [name, command] of Object.entries({
      'curl over HTTP/1.1': 'curl -sS --http1.1 https://api.test/ -H "Authorization: Bearer $TOKEN"',
      'curl over HTTP/2': 'curl -sS --http2 https://api.test/ -H "Authorization: Bearer $TOKEN"',
      'curl with the list of the system only':
        'env -u SSL_CERT_FILE -u CURL_CA_BUNDLE curl -sS https://api.test/ -H "Authorization: Bearer $TOKEN"',
      'fetch of Node':
        "node -e \"fetch('https://api.test/',{headers:{authorization:'Bearer '+process.env.TOKEN}}).then(r=>r.text()).then(console.log)\"",
      'urllib of Python':
        "python3 -c \"import os,urllib.request as u; print(u.urlopen(u.Request('https://api.test/', headers={'Authorization': 'Bearer '+os.environ['TOKEN']})).read().decode())\"",
    }))
      test(`if ${name} calls a host of a secret, that host gets the secret’s value`, async () => {
        assert.match(await say(command), /Bearer the-real-value/)
      })

    for (const [name, { command, expected }] of Object.entries({
      git: {
        command: 'git -c "http.extraHeader=Authorization: Bearer $TOKEN" ls-remote https://api.test/git',
        expected: /refs\/heads\/main/,
      },
      'git with the placeholder as password': {
        command: 'git ls-remote https://me:$TOKEN@api.test/git',
        expected: /refs\/heads\/main/,
      },
      npm: {
        command:
          'cd /tmp && npm view pkg version --registry https://api.test/npm/ "--//api.test/npm/:_authToken=$TOKEN" --fetch-retries 0',
        expected: /1\.2\.3/,
      },
      pip: {
        command:
          'python3 -m pip index versions pkg --index-url https://me:$TOKEN@api.test/simple --disable-pip-version-check',
        expected: /pkg \(1\.2\.3\)/,
      },
      openssl: {
        command: 'openssl s_client -connect api.test:443 -verify_return_error -verify_hostname api.test </dev/null',
        expected: /Alcove secrets/,
      },
    }))
      test(`${name} works with the certificates of the proxy that inserts secrets`, async () => {
        assert.match(await say(command), expected)
      })

    test('the memory limit of the proxy that inserts secrets includes memory outside of the JavaScript heap', async () => {
      const limits: string[] = []
      for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
        const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
        if (!command.includes(join(root, 'src/egress/process.ts'))) continue
        limits.push((await readFile(`/proc/${pid}/limits`, 'utf8')).match(/Max data size +(\S+)/)?.[1] ?? 'none')
      }
      assert.deepEqual([...new Set(limits)], [String(2.5 * 1024 ** 3)])
    })

    test('clients that a user installs in a sandbox (requests, httpx, skopeo) trust the proxy for secrets', async () => {
      const bundle = join(scratch, 'bundle.pem')
      await writeFile(bundle, await sandbox.fs.downloadFile(trustFiles.bundle))
      await writeFile(join(scratch, 'authorities.jks'), await sandbox.fs.downloadFile(trustFiles.keyStore))
      const ask =
        "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('198.51.100.7', 9)); print(s.getsockname()[0])"
      const [, , third = 0, fourth = 0] = (await say(`python3 -c "${ask}"`)).split('.').map(Number)
      const slot = (third % 16) * 256 + fourth - 1
      const names = await runCommand(['ip', 'netns', 'list'])
      const [netns = ''] = new RegExp(`alcove-\\w+-${slot}\\b`).exec(names) ?? []
      const inside = async (command: string) =>
        await runCommand(['ip', 'netns', 'exec', netns, 'sh', '-c', command], {
          env: { SSL_CERT_FILE: bundle, REQUESTS_CA_BUNDLE: bundle, TOKEN: placeholder, HOME: scratch },
        })
      const headers = `headers={'Authorization': 'Bearer '+os.environ['TOKEN']}`
      for (const client of ['requests', 'httpx']) {
        const script = `import os, ${client}; print(${client}.get('https://api.test/', ${headers}).text)`
        assert.match(await inside(`/usr/bin/python3 -c "${script}"`), /Bearer the-real-value/, client)
      }
      const inspect = 'skopeo inspect --raw --creds me:$TOKEN docker://api.test/pkg:1'
      assert.match(await inside(inspect), /schemaVersion/)
    })

    test('a host that a secret does not list gets only the placeholder, over TLS that no proxy decrypts', async () => {
      const { text, exitCode } = await run('curl -sS https://other.test/ -H "Authorization: Bearer $TOKEN"')
      // curl fails because it gets the certificate of the simulated host, which the sandbox does not trust, instead of a
      // certificate of the proxy for secrets.
      assert.notEqual(exitCode, 0, text)
      const insecure = await say('curl -sSk https://other.test/ -H "Authorization: Bearer $TOKEN"')
      assert.match(insecure, new RegExp(`Bearer ${placeholder}`))
    })

    test('a call to an unlisted host name gets no secret, even over a listed host’s address or TLS connection', async () => {
      const command =
        'curl -sSk --connect-to other.test:443:api.test:443 https://other.test/ -H "Authorization: Bearer $TOKEN"'
      assert.match(await say(command), new RegExp(placeholder))
      const fronted = `curl -sS -o /dev/null -w '%{http_code}' https://api.test/ -H 'Host: other.test'`
      assert.equal(await say(fronted), '421')
    })

    test('if a program does not trust the proxy for secrets, the program’s call fails; the timeline says why', async () => {
      await say(
        'curl -sS --cacert /etc/hostname https://api.test/ 2>&1; curl -sS --capath /nowhere --cacert /usr/share/ca-certificates/mozilla/ISRG_Root_X1.crt https://api.test/ 2>&1; true',
      )
      const events = async () => JSON.stringify((await alcove.api('GET', `/sandbox/${sandbox.id}/events`)).body)
      await until('the timeline says why', async () => /refused the certificate for api\.test/.test(await events()))
    })

    test('a change of a secret’s value or hosts takes effect in a running sandbox', async () => {
      await daytona.secret.update(secretId, { value: 'rotated-value' })
      await until('the new value is sent', async () => (await sentBy(sandbox)) === 'Bearer rotated-value')
      await daytona.secret.update(secretId, { hosts: ['elsewhere.test'] })
      await until('the host is taken away', async () => !(await sentBy(sandbox))?.includes('rotated'))
      await daytona.secret.update(secretId, { hosts: ['api.test'], value })
      await until('the host is back', async () => (await sentBy(sandbox)) === `Bearer ${value}`)
    })

    test('`updateSecrets` can give a running sandbox a secret, and can remove the secret again', async () => {
      const box = await daytona.create()
      await box.updateSecrets({ TOKEN: 'api-key' })
      assert.equal(await say('echo $TOKEN', { in: box }), placeholder)
      await until('the value is sent', async () => (await sentBy(box)) === `Bearer ${value}`)
      await box.updateSecrets({})
      assert.equal(await say('echo "<$TOKEN>"', { in: box }), '<>')
      const kept = { in: box, env: { TOKEN: placeholder } }
      await until('nothing is put in', async () =>
        (await run(`${authorization} -k`, kept)).text.includes(`Bearer ${placeholder}`),
      )
      await box.delete()
    })

    test('the network policy of a sandbox also applies to the hosts of its secrets', async () => {
      const isClosed = () => until('the host is closed', async () => (await run(authorization)).exitCode !== 0)
      const isOpen = () => until('the host is open', async () => (await sentBy(sandbox)) === `Bearer ${value}`)
      await sandbox.updateNetworkSettings({ networkBlockAll: true })
      await isClosed()
      await sandbox.updateNetworkSettings({ networkBlockAll: false, networkAllowList: `${web.api}/32` })
      await isOpen()
      await sandbox.updateNetworkSettings({ networkAllowList: `${web.other}/32` })
      await isClosed()
      await sandbox.updateNetworkSettings({ networkBlockAll: false })
      await isOpen()
    })

    test('a sandbox’s secrets still work after a stop and start of the sandbox and after a kill of its runner', async () => {
      await sandbox.stop()
      await sandbox.start()
      await until('after a start', async () => (await sentBy(sandbox)) === `Bearer ${value}`)
      await alcove.kill('runner')
      await until(
        'after the runner came back',
        async () => (await sentBy(sandbox).catch(() => '')) === `Bearer ${value}`,
        60,
      )
    })

    test('no log of the server and no journal contains the value of a secret', async () => {
      const places = [join(alcove.data, 'log'), join(alcove.data, 'runner/sandboxes')]
      const found = runCommand(['grep', '-rla', value, ...places])
      assert.equal(await found.catch(() => ''), '')
      assert.match(await runCommand(['grep', '-rla', placeholder, ...places]), /spec\.json/)
    })

    test('the script of the guide on secrets runs as it is printed, and prints what the guide shows', async () => {
      const page = await readFile(join(root, 'docs/guides/secrets.md'), 'utf8')
      const [[, script = ''] = []] = page.matchAll(/```js\n([\s\S]*?)```/g)
      const [[, shown = ''] = []] = page.matchAll(/```text\n([\s\S]*?)```/g)
      await mkdir(join(scratch, 'node_modules'))
      await symlink(join(root, 'node_modules/@daytona'), join(scratch, 'node_modules/@daytona'))
      await writeFile(join(scratch, 'guide.mjs'), script.replaceAll('api.example.com', 'api.test'))
      const env = { ...process.env, DAYTONA_API_URL: `${alcove.url}/api`, DAYTONA_API_KEY: alcove.key }
      const printed = await runCommand([process.execPath, join(scratch, 'guide.mjs')], { env, timeoutMs: 60_000 })
      assert.equal(printed.replace(/(alcove_secret_)\w+/, '$1…'), shown)
    })

    test('the variable of a deleted secret is removed from each sandbox that had the secret', async () => {
      await daytona.secret.delete(secretId)
      await until('the variable is gone', async () => (await say('echo "<$TOKEN>"')) === '<>')
      const env = { TOKEN: placeholder }
      const insecure = `${authorization} -k`
      await until('nothing is put in', async () =>
        (await run(insecure, { env })).text.includes(`Bearer ${placeholder}`),
      )
    })
  })
}
