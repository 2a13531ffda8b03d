import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { suite, test } from 'node:test'
import type { Access } from '#src/wire/access.ts'
import type { Runners } from './runners.ts'
import { toolboxOf } from './toolbox.ts'

const request = (headers: Record<string, string>) => {
  const made = new IncomingMessage(new Socket())
  made.rawHeaders = Object.entries(headers).flat()
  for (const [name, value] of Object.entries(headers)) made.headers[name.toLowerCase()] = value
  return made
}

suite('proxy: a call to a toolbox', () => {
  test('tells the toolbox the version of the SDK, and nothing else of what SDKs say about themselves', () => {
    const call = request({
      Authorization: 'Bearer secret',
      'X-Daytona-SDK-Version': '0.216.0',
      'X-Daytona-Source': 'typescript-sdk',
      'X-Daytona-Organization-ID': 'org-1',
    })
    const access = { sandboxId: 'box-1', runnerAddress: 'runner' } as Access
    const { inward } = toolboxOf({} as Runners, access, '/process/execute', call)
    assert.deepEqual(inward(true).slice(0, 4), ['Host', 'toolbox', 'X-Daytona-SDK-Version', '0.216.0'])
    assert.doesNotMatch(inward(false).join('\n'), /secret|typescript-sdk|org-1/)
  })
})
