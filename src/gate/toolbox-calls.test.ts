import assert from 'node:assert/strict'
import { IncomingMessage, type ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { assignmentWith } from '#src/toolbox/testing/assignment.ts'
import { type Access, pathOfSignedFile, type VariableQuestion } from '#src/wire/access.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import { digestOfCall, ticketLastsMs, ticketSkewMs } from '#src/wire/ticket.ts'
import { createDoor } from './door.ts'
import type { RunnerLink } from './runner-link.ts'
import type { AdmittedSandbox } from './sandboxes.ts'
import { newSigner, ticketsOf } from './testing/signer.ts'
import { calledBy, passCall } from './toolbox-calls.ts'

const request = (headers: Record<string, string> = {}) => {
  const made = new IncomingMessage(new Socket())
  for (const [name, value] of Object.entries(headers)) made.headers[name.toLowerCase()] = value
  return made
}

const signer = newSigner()
const endingIn = (ms: number) => signer.sign({ ...whose, expiresAt: Date.now() + ms })
const whose = { sandboxId: 'box-1', organizationId: 'org-1' }
const access = {
  ...whose,
  ticket: signer.sign(whose),
  runnerAddress: 'unix:/runner',
  isStarted: true,
  leastGeneration: 7,
} as Access
const toolbox = { call: () => undefined, upgrade: async () => 101 }
const control = { changeVariables: async () => ({ generation: 0 }) }
const response = { appendHeader: () => undefined } as unknown as ServerResponse

const sandbox: SandboxHere = {
  id: 'box-1',
  assignment: assignmentWith({}),
  status: 'started',
  socketPath: '/agent',
}

suite('a call that the gate passes to a toolbox', () => {
  test('of credentials and X-Daytona headers, the toolbox gets only the SDK’s name and version', () => {
    const call = request({
      Authorization: 'Bearer secret',
      'X-Daytona-SDK-Version': '0.216.0',
      'X-Daytona-Source': 'typescript-sdk',
      'X-Daytona-Organization-ID': 'org-1',
    })
    passCall(toolbox, call, response, { entering: access, rest: '/process/execute' })
    assert.deepEqual(call.headers, { 'x-daytona-sdk-version': '0.216.0', 'x-daytona-source': 'typescript-sdk' })
    assert.equal(call.url, '/toolbox/box-1/process/execute')
  })

  test('a toolbox call reaches only the sandbox of its ticket, and only in the generation that control named', async () => {
    const wanted: AdmittedSandbox[] = []
    const find = async (asked: AdmittedSandbox) => {
      wanted.push(asked)
      return { sandbox, link: {} as RunnerLink }
    }
    const door = createDoor({ find }, ticketsOf(signer))
    const call = request()
    passCall(toolbox, call, response, { entering: access, rest: '' })
    assert.equal((await calledBy(door, control)(call, 'box-1')).sandbox.socketPath, '/agent')
    assert.equal(wanted[0]?.leastGeneration, 7)
    await assert.rejects(calledBy(door, control)(call, 'box-2'), { status: 401 })
    await assert.rejects(calledBy(door, control)(request(), 'box-1'), { status: 401 })
    assert.equal(wanted.length, 1)
  })

  test('the gate answers a change of environment variables when the runner has the sandbox’s new generation', async () => {
    const held: SandboxHere = { ...sandbox, config: { env: { LANG: 'C' }, workdir: '/' } }
    const wanted: (number | undefined)[] = []
    const find = async ({ leastGeneration }: AdmittedSandbox) => {
      wanted.push(leastGeneration)
      return { sandbox: held, link: {} as RunnerLink }
    }
    const asked: VariableQuestion[] = []
    const changeVariables = async (question: VariableQuestion) => {
      asked.push(question)
      return { generation: 9 }
    }
    const call = request()
    call.method = 'POST'
    passCall(toolbox, call, response, { entering: access, rest: '/env' })
    const called = await calledBy(createDoor({ find }, ticketsOf(signer)), { changeVariables })(call, 'box-1')
    await called.changeVariables({ set: { A: '1' }, unset: ['LANG'] })
    const [{ inherited, ...question } = assert.fail()] = asked
    assert.deepEqual(question, { ticket: access.ticket, set: { A: '1' }, unset: ['LANG'] })
    assert.deepEqual([inherited['LANG'], inherited['DAYTONA_SANDBOX_ID'], inherited['PATH']], ['C', 'box-1', undefined])
    assert.deepEqual(wanted, [7, 9])
  })

  const signedFile = { kind: 'call', digest: digestOfCall('GET', pathOfSignedFile('GET', '/tmp/a b')) } as const
  const download = '/files/download?path=%2Ftmp%2Fa%20b'

  for (const [what, status, ticket, call = {}] of [
    ['200 with a ticket for the toolbox', 200, () => signer.sign(whose)],
    ['401 without a ticket', 401, () => undefined],
    ['401 with a text that is not a ticket', 401, () => 'v1.key-1.e30.AA'],
    ['401 with a ticket that a stranger signed in the name of the key', 401, () => newSigner().sign(whose)],
    ['401 with a ticket of an unknown key', 401, () => newSigner('key-2').sign(whose)],
    ['401 with a ticket that is cut off', 401, () => signer.sign(whose).slice(0, -1)],
    ['401 with a ticket for another sandbox', 401, () => signer.sign({ ...whose, sandboxId: 'box-2' })],
    ['401 with a ticket for another organization', 401, () => signer.sign({ ...whose, organizationId: 'org-2' })],
    ['200 with a ticket that expired within the allowed clock skew', 200, () => endingIn(-ticketSkewMs + 1000)],
    ['401 with a ticket that expired earlier', 401, () => endingIn(-ticketSkewMs - 1000)],
    ['200 with a ticket of a clock that is slightly ahead', 200, () => endingIn(ticketLastsMs + ticketSkewMs - 1000)],
    ['401 with a ticket of a clock that is far ahead', 401, () => endingIn(ticketLastsMs + ticketSkewMs + 1000)],
    ['403 with a ticket for a port', 403, () => signer.sign({ ...whose, allowed: { kind: 'port', port: 2280 } })],
    ['200 with a ticket for this file', 200, () => signer.sign({ ...whose, allowed: signedFile }), { rest: download }],
    [
      '403 with a ticket for one file in a call for another file',
      403,
      () => signer.sign({ ...whose, allowed: signedFile }),
      { rest: `${download}x` },
    ],
    [
      '403 with a ticket for a download in an upload',
      403,
      () => signer.sign({ ...whose, allowed: signedFile }),
      { method: 'POST', rest: download },
    ],
    [
      '403 with a ticket for a download in a call of a command',
      403,
      () => signer.sign({ ...whose, allowed: signedFile }),
      { method: 'POST', rest: '/process/execute' },
    ],
  ] as readonly [string, number, () => string | undefined, { method?: string; rest?: string }?][]) {
    test(`a toolbox call gets the status ${what}; the gate looks up the sandbox only for a valid ticket`, async () => {
      let looked = 0
      const find = async () => {
        looked += 1
        return { sandbox, link: {} as RunnerLink }
      }
      const { method = 'GET', rest = '/work-dir' } = call
      const made = request()
      made.method = method
      passCall(toolbox, made, response, { entering: { ...access, ticket: ticket() } as Access, rest })
      const answered = await calledBy(createDoor({ find }, ticketsOf(signer)), control)(made, 'box-1').then(
        () => 200,
        (error) => error.status,
      )
      assert.equal(answered, status)
      // Only the runner knows the sandbox's owner, so the gate refuses a ticket of another organization only after the lookup.
      if (!what.includes('organization')) assert.equal(looked, status === 200 ? 1 : 0)
    })
  }
})
