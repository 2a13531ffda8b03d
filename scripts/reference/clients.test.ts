import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { suite, test } from 'node:test'
import { asCall } from '#src/http/unserved.ts'
import { operationsOf, sdkMethods } from './clients.ts'

const packages = resolve(import.meta.dirname, '../../node_modules/@daytona')

suite('what the published Daytona packages can call', () => {
  for (const client of ['api-client', 'toolbox-api-client'] as const)
    test(`operationsOf finds every request of the published package ${client}, each under a name of its own`, () => {
      const requests = globSync(`${packages}/${client}/src/api/*-api.js`)
        .map((file) => readFileSync(file, 'utf8').split('const localVarPath = ').length - 1)
        .reduce((sum, count) => sum + count, 0)
      const operations = operationsOf(client)
      assert.ok(requests > 50)
      assert.deepEqual([operations.length, new Set(operations.map(({ name }) => name)).size], [requests, requests])
    })

  test('`sdkMethods` finds the operations that an SDK method calls, directly or through other methods', () => {
    const methods = sdkMethods([...operationsOf('api-client'), ...operationsOf('toolbox-api-client')])
    const find = (owner: string, name: string) => {
      const found = methods.find((method) => method.owner === owner && method.name === name)
      return found && { calls: [...found.calls].sort(), opensSocket: found.opensSocket }
    }
    assert.deepEqual(find('VolumeService', 'list'), { calls: ['listVolumes'], opensSocket: false })
    assert.deepEqual(find('Daytona', 'stop'), { calls: ['getSandbox', 'stopSandbox'], opensSocket: false })
    assert.deepEqual(find('LspServer', 'start')?.calls, ['start'])
    assert.deepEqual(find('RecordingService', 'start')?.calls, ['startRecording'])
    assert.equal(find('Process', 'createPty')?.opensSocket, true)
    assert.deepEqual(find('Image', 'env'), { calls: [], opensSocket: false })
  })

  test('two calls of the API count as one call if their paths differ only in the names of parameters', () => {
    assert.equal(asCall('GET', '/a/:id/b'), asCall('GET', '/a/{name}/b'))
  })
})
