// Clients cannot fill the log: their mistakes cause no line of level warning or above, and every line is structured.
import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox, until } from './box.ts'
import { faultsOf } from './faults-of-clients.ts'
import { type Platform, platform } from './harness.ts'

const programs = ['control', 'gate', 'runner', 'postgres', 'ssh-gateway'] as const
const warning = 40

/** Two servers in the sandbox that do not speak HTTP: one sends other bytes, the other closes each connection. */
const badServers = `python3 - <<'END' >/dev/null 2>&1 &
import socket, threading
def serve(port, answer):
    server = socket.create_server(('', port))
    while True:
        caller, _ = server.accept()
        caller.recv(1000); caller.send(answer); caller.close()
threading.Thread(target=serve, args=(3001, b'SSH-2.0-x\\r\\n')).start()
serve(3002, b'')
END
head -c 50000000 /dev/zero > /tmp/large`

suite('the logs of the programs', () => {
  let alcove: Platform
  let box: Box
  before(async () => {
    alcove = await platform({ own: true, image: 'small' })
    box = await createBox(alcove)
    await box.run(badServers)
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const fileOf = (program: string) => join(alcove.data, 'log', `${program}.log`)
  const linesFrom = (program: string, from: number) =>
    readFileSync(fileOf(program)).subarray(from).toString().split('\n').filter(Boolean)
  const sizes = () => programs.map((program) => statSync(fileOf(program)).size)

  test('every line in the logs of the programs is JSON with a level, from the start on', () => {
    for (const program of programs)
      for (const line of linesFrom(program, 0)) assert.ok('level' in JSON.parse(line), `${program}: ${line}`)
  })

  test('no mistake of a client causes a warning, or more than a few lines, in the programs’ logs', async () => {
    // The first call to the issuer loads oidc-provider, which warns once that this Node is not a version with long-term support.
    await fetch(`${alcove.url}/oidc/.well-known/openid-configuration`)
    const wrong: string[] = []
    let from = sizes()
    const faults = faultsOf(alcove, box)
    /** Checks the new lines of the log. A line that a mistake causes a moment later counts for the next mistake. */
    const look = (what: string, most = 5) => {
      for (const [index, program] of programs.entries()) {
        const lines = linesFrom(program, from[index]!)
        const told = lines.filter((line) => JSON.parse(line).level >= warning)
        if (told.length > 0 || lines.length > most) wrong.push(`${what}: ${program}: ${lines.slice(0, 5).join('\n')}`)
      }
      from = sizes()
    }
    for (const [what, commit] of faults) {
      await commit()
      look(what)
    }
    // Check that the server still answers. These calls also give log lines that come late some time to arrive.
    assert.equal((await alcove.api('GET', '/sandbox')).status, 200)
    await until('the sandbox answers', async () => (await box.toolbox('GET', '/user-home-dir')).status === 200)
    look('the end')
    assert.equal(wrong.length, 0, wrong.join('\n\n'))
  })
})
