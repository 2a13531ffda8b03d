import assert from 'node:assert/strict'
import { IncomingMessage, type ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { assignmentWith } from '#src/toolbox/testing/assignment.ts'
import type { Access } from '#src/wire/access.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import type { RunnerLink } from './runner-link.ts'
import type { Wanted } from './sandboxes.ts'
import { calledBy, passCall } from './toolbox-calls.ts'

const request = (headers: Record<string, string> = {}) => {
  const made = new IncomingMessage(new Socket())
  for (const [name, value] of Object.entries(headers)) made.headers[name.toLowerCase()] = value
  return made
}

const access = { sandboxId: 'box-1', runnerAddress: 'unix:/runner', isStarted: true, leastGeneration: 7 } as Access
const toolbox = { call: () => undefined, upgrade: async () => 101 }
const response = { appendHeader: () => undefined } as unknown as ServerResponse

suite('gate: a call to a toolbox', () => {
  test('tells the toolbox which SDK calls and its version, and nothing of who calls', () => {
    const call = request({
      Authorization: 'Bearer secret',
      'X-Daytona-SDK-Version': '0.216.0',
      'X-Daytona-Source': 'typescript-sdk',
      'X-Daytona-Organization-ID': 'org-1',
    })
    passCall(toolbox, call, response, { access, rest: '/process/execute' })
    assert.deepEqual(call.headers, { 'x-daytona-sdk-version': '0.216.0', 'x-daytona-source': 'typescript-sdk' })
    assert.equal(call.url, '/toolbox/box-1/process/execute')
  })

  test('reaches the sandbox that it was let in to, in the generation that control means, and no other', async () => {
    const wanted: Wanted[] = []
    const sandbox: SandboxHere = {
      id: 'box-1',
      assignment: assignmentWith({}),
      status: 'started',
      socketPath: '/agent',
    }
    const find = async (asked: Wanted) => {
      wanted.push(asked)
      return { sandbox, link: {} as RunnerLink }
    }
    const call = request()
    passCall(toolbox, call, response, { access, rest: '' })
    assert.equal((await calledBy({ find })(call, 'box-1')).sandbox.socketPath, '/agent')
    assert.equal(wanted[0]?.leastGeneration, 7)
    await assert.rejects(calledBy({ find })(call, 'box-2'), { status: 401 })
    await assert.rejects(calledBy({ find })(request(), 'box-1'), { status: 401 })
    assert.equal(wanted.length, 1)
  })
})
