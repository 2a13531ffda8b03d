// For tests: starts a real S3 server (see `s3-server.py`) with a bucket. The server ends by `stop`, or with the process of the
// test.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AwsV4Signer } from 'aws4fetch'
import { request } from 'undici'
import type { S3Address } from '#src/kit/store-address.ts'

/** Why the tests with S3 cannot run here, or false. `./alcove test` installs the package that they need. */
export const withoutS3 = existsSync('/usr/lib/python3/dist-packages/swift/__init__.py') ? false : 'needs python3-swift'

const accessKey = 'alcove:tests'
const secret = 'a-secret-of-the-tests'

export const startS3 = async (bucket: string) => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-s3-'))
  const script = join(import.meta.dirname, 's3-server.py')
  const child = spawn('/usr/bin/python3', [script, directory, accessKey, secret], { stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.on('data', (text: Buffer) => {
    said = (said + text.toString()).slice(-4000)
  })
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const closed = once(child, 'close')
      child.kill('SIGKILL')
      await closed
    }
    rmSync(directory, { recursive: true, force: true })
  }
  const first = await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
  const port = Number(first[0]?.toString())
  if (!(port > 0)) {
    await stop()
    throw new Error(`the S3 server did not start: ${said}`)
  }
  const address: S3Address = {
    kind: 's3',
    endpoint: new URL(`http://127.0.0.1:${port}`),
    region: 'us-east-1',
    bucket,
    prefix: 'some/prefix/',
    accessKey,
    secret,
  }
  await makeBucket(address).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return { address, stop, [Symbol.asyncDispose]: stop }
}

const makeBucket = async ({ endpoint, bucket, region }: S3Address) => {
  const url = new URL(`/${bucket}`, endpoint)
  const who = { accessKeyId: accessKey, secretAccessKey: secret, service: 's3', region }
  const { headers } = await new AwsV4Signer({ method: 'PUT', url: url.href, ...who }).sign()
  const { statusCode, body } = await request(url, { method: 'PUT', headers: Object.fromEntries(headers) })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`the bucket was not made: ${statusCode} ${text}`)
}
