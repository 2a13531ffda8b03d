// What tests need to upload the files of an image: a real gate, a real store in a directory, and a simulated control with two
// organizations.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { S3Client } from '@aws-sdk/client-s3'
import { startGate } from '#src/gate/main.ts'
import { silentLog } from '#src/kit/log.ts'
import { DirectoryStore } from '#src/runner/archive/directory-store.ts'
import type { ObjectStore } from '#src/runner/archive/store.ts'
import { type ContextLimits, standardLimits } from '#src/runner/contexts/limits.ts'
import { ContextStore } from '#src/runner/contexts/store.ts'
import { serveGates } from '#src/runner/gate-link/socket.ts'
import { SimulatedHost } from '#src/runner/testing/simulated-host.ts'
import { contextBucket, contextRegion, type UploadQuestion } from '#src/wire/contexts.ts'

/**
 * Access keys that the simulated control knows, with the organization and the secret of each key. For other keys, control answers
 * 401.
 */
export const known: Record<string, { organizationId: string; secret: string; status?: number }> = {
  ALCVOURS: { organizationId: 'ours', secret: 'secret-of-ours' },
  ALCVTHEIRS: { organizationId: 'theirs', secret: 'secret-of-theirs' },
  ALCVEXPIRED: { organizationId: 'ours', secret: 'secret-of-ours', status: 410 },
}

export const sessionToken = 'a-token'

export const startUploads = async (
  given: {
    limits?: Partial<ContextLimits>
    wrap?: (store: ObjectStore) => ObjectStore
    /**
     * If set, control says that a runner of another host stores the uploads. `isRunnerHere`: whether the gate's own host has a
     * runner too.
     */
    elsewhere?: { isRunnerHere: boolean }
  } = {},
) => {
  const directory = await mkdtemp(join(tmpdir(), 'alcove-uploads-'))
  const socket = join(directory, 'runner.sock')
  const time = { now: Date.now() }
  const limits = { ...standardLimits, ...given.limits }
  const kept = new DirectoryStore(join(directory, 'store'))
  const contexts = new ContextStore(given.wrap?.(kept) ?? kept, { limits, now: () => time.now })
  const host = new SimulatedHost()
  const gid = process.getgid?.() ?? 0
  const runner = await serveGates({ host, contexts, configOf: () => undefined, log: silentLog() }, socket, gid)

  const place =
    given.elsewhere === undefined
      ? { runnerAddress: `unix:${socket}` }
      : { runnerAddress: 'unix:/of/another/host.sock', gateId: 'other' }
  const control = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const question = JSON.parse(Buffer.concat(parts).toString()) as UploadQuestion
    const found = question.sessionToken === sessionToken ? known[question.accessKey] : undefined
    const status = found === undefined ? 401 : (found.status ?? 200)
    const { organizationId, secret } = found ?? {}
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(status === 200 ? { organizationId, secret, ...place } : {}))
  })
  // Refuse the WebSocket that the gate opens to control, because these tests do not need it.
  control.on('upgrade', (_request, socket) => socket.destroy())
  control.listen(0, '127.0.0.1')
  await once(control, 'listening')
  const gate = await startGate(
    {
      listen: { host: '127.0.0.1', port: 0 },
      controlUrl: new URL(`http://127.0.0.1:${(control.address() as AddressInfo).port}`),
      proxyKey: 'proxy-key',
      publicUrl: new URL('http://127.0.0.1'),
      runnerSocket: given.elsewhere?.isRunnerHere ? socket : undefined,
      executeTimeoutSeconds: 10,
    },
    silentLog(),
  )
  const url = `http://127.0.0.1:${gate.port}`
  return {
    url,
    port: gate.port,
    contexts,
    time,
    /** Returns an S3 client with the settings that the public SDK gives to its S3 client. */
    client: (accessKey = 'ALCVOURS', more: { secret?: string; token?: string } = {}) =>
      new S3Client({
        region: contextRegion,
        endpoint: url,
        forcePathStyle: true,
        maxAttempts: 1,
        credentials: {
          accessKeyId: accessKey,
          secretAccessKey: more.secret ?? known[accessKey]?.secret ?? 'nobody',
          sessionToken: more.token ?? sessionToken,
        },
      }),
    /** Returns the keys of all objects in the store that begin with `contexts/`. */
    objects: async () => {
      const keys: string[] = []
      for await (const { key } of kept.list('contexts/')) keys.push(key)
      return keys.sort()
    },
    [Symbol.asyncDispose]: async () => {
      await gate.close()
      await runner[Symbol.asyncDispose]()
      control.close()
      control.closeAllConnections()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

export type Uploads = Awaited<ReturnType<typeof startUploads>>

export const hash = 'a'.repeat(32)
export const keyIn = (organizationId: string, named = hash) => ({
  Bucket: contextBucket,
  Key: `${organizationId}/${named}/context.tar`,
})
