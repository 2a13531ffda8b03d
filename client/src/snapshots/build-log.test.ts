import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { suite, test } from 'node:test'
import { Api } from '../api.ts'
import { exitCodes, Failure } from '../failure.ts'
import { printBuildLog } from './build-log.ts'

suite('the log of a build', () => {
  test('if the connection is lost, `printBuildLog` prints the arrived part of a build’s log, and then fails', async () => {
    const to = new PassThrough()
    const server = createServer((_request, response) => {
      response.write('first line\n')
      to.once('readable', () => response.destroy())
    }).listen(0, '127.0.0.1')
    try {
      await once(server, 'listening')
      const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`
      const printed = printBuildLog(new Api({ apiUrl, token: async () => 'k' }), 'snapshots', 'id', {
        follow: true,
        to,
      })
      await assert.rejects(printed, (error) => error instanceof Failure && error.exitCode === exitCodes.unreachable)
      assert.equal(to.read()?.toString(), 'first line\n')
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})
