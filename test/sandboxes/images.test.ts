// Tests sandboxes from images, through the public SDK. A registry on loopback serves an image with one static program.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { type Daytona, Image } from '@daytona/sdk'
import { tarOf } from '#src/runner/images/testing/oci-image.ts'
import { TestRegistry } from '#src/runner/images/testing/registry.ts'
import { until } from './box.ts'
import { makeBusyboxImage, noBusybox } from './busybox-image.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

suite('sandboxes from images', { skip: noBusybox }, () => {
  let alcove: Platform
  let registry: TestRegistry
  let daytona: Daytona
  let reference: string
  /** A directory on the caller's machine. */
  const files = mkdtempSync(join(tmpdir(), 'alcove-files-'))
  before(async () => {
    registry = await TestRegistry.start()
    reference = registry.put('team/tool:1', makeBusyboxImage())
    alcove = await platform({ own: true, image: 'small', env: { ALCOVE_PLAIN_REGISTRIES: registry.host } })
    daytona = connectTo(alcove)
  })
  after(async () => {
    rmSync(files, { recursive: true, force: true })
    await daytona?.[Symbol.asyncDispose]()
    await registry?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  test('a snapshot is made of an image, and a sandbox is made of the snapshot', async () => {
    const snapshot = await daytona.snapshot.create({ name: 'tool', image: reference })
    assert.equal(snapshot.state, 'active')
    const sandbox = await daytona.create({ snapshot: 'tool' })
    const said = await sandbox.process.executeCommand('cat /etc/motto; echo $FROM_IMAGE')
    assert.deepEqual([said.exitCode, said.result], [0, 'small\nyes\n'])
    await sandbox.delete()
  })

  test('POST /sandbox may name an image; a second create with that image works too', async () => {
    for (const _ of [1, 2]) {
      const sandbox = await daytona.create({ image: reference, resources: { cpu: 1, memory: 1, disk: 1 } })
      assert.equal(sandbox.state, 'started')
      assert.equal((await sandbox.process.executeCommand('cat /etc/motto')).result, 'small\n')
      await sandbox.delete()
    }
    assert.equal(registry.asked.filter((path) => path.includes('/manifests/')).length < 8, true)
  })

  test('a sandbox can be created from a definition, whose commands have run; a failed build says why', async () => {
    const image = Image.base(reference).env({ COLOR: 'red' }).runCommands('echo $COLOR > /made').workdir('/srv/app')
    const sandbox = await daytona.create({ image })
    const said = await sandbox.process.executeCommand('cat /made; echo $COLOR; ls -d /srv/app')
    assert.equal(said.result, 'red\nred\n/srv/app\n')
    await sandbox.delete()
    const logs: string[] = []
    await daytona.snapshot.create(
      { name: 'made', image: Image.base(reference).runCommands('echo once; sleep 1; echo $((20 + 3))') },
      { onLogs: (chunk) => logs.push(chunk) },
    )
    assert.match(logs.join('\n'), /Line 2: echo once; [^\n]*\nonce\n23/)
    // From the state "image is being built" on, the SDK follows the log.
    const states: Promise<unknown>[] = []
    const live = await daytona.create(
      { name: 'live', image: Image.base(reference).runCommands('echo begun; sleep 5; echo done') },
      {
        onSnapshotCreateLogs: (chunk) => {
          logs.push(chunk)
          if (/^begun$/m.test(chunk)) states.push(alcove.api('GET', '/sandbox/live').then(({ body }) => body['state']))
        },
      },
    )
    assert.match(logs.join('\n'), /^begun$[\s\S]*^done$/m)
    assert.deepEqual(await Promise.all(states), ['building_snapshot'])
    await live.delete()
    const failing = Image.base(reference).runCommands('echo never again >&2; exit 4')
    // The SDK learns of the failure from an event, and takes only the state from the event.
    await assert.rejects(daytona.create({ name: 'failing', image: failing }), /build_failed/)
    const { body } = await alcove.api('GET', '/sandbox/failing')
    assert.deepEqual([body['state'], body['errorReason']], ['build_failed', 'Line 2: exit code 4\nnever again'])
    const { url } = (await alcove.api('GET', '/sandbox/failing/build-logs-url')).body
    const log = await fetch(`${url}?follow=true`, { headers: { authorization: `Bearer ${alcove.key}` } })
    assert.match(
      await log.text(),
      /\nLine 2: echo never again >&2; exit 4\nnever again\nLine 2: exit code 4\nnever again\n$/,
    )
  })

  test('a definition may have several stages, and may start FROM the built-in snapshot', async () => {
    const buildInfo = [
      `FROM ${reference} AS other`,
      'FROM default',
      'USER root',
      'RUN python3 -c "print(6 * 7)" > /made && id -un >> /made',
      'COPY --from=other /etc/motto /motto',
      'ENV COLOR=red',
      'USER daytona',
    ].join('\n')
    writeFileSync(join(files, 'Stages'), buildInfo)
    const sandbox = await daytona.create({ image: Image.fromDockerfile(join(files, 'Stages')) })
    const said = await sandbox.process.executeCommand('cat /made /motto; echo $COLOR; id -un')
    assert.equal(said.result, '42\nroot\nsmall\nred\ndaytona\n')
    await sandbox.delete()
  })

  test('sandboxes start in the working directory of their image, even after its snapshot was deleted', async () => {
    const image = Image.base(reference).env({ COLOR: 'red' }).workdir('/srv/app')
    const first = await daytona.create({ image })
    assert.equal((await first.process.executeCommand('pwd')).result, '/srv/app\n')
    assert.equal(await first.getWorkDir(), '/srv/app')
    await first.fs.uploadFile(Buffer.from('here\n'), 'note.txt')
    assert.equal((await first.process.executeCommand('cat /srv/app/note.txt')).result, 'here\n')
    assert.equal((await alcove.api('POST', `/sandbox/${first.id}/snapshot`, { name: 'worked' })).status, 200)
    await until('a snapshot', async () => (await daytona.snapshot.get('worked')).state === 'active')
    const second = await daytona.create({ snapshot: 'worked' })
    await daytona.snapshot.delete(await daytona.snapshot.get('worked'))
    await until('no such snapshot', async () => (await alcove.api('GET', '/snapshots/worked')).status === 404)
    const said = await second.process.executeCommand('pwd; echo $COLOR; cat note.txt')
    assert.equal(said.result, '/srv/app\nred\nhere\n')
    await Promise.all([first.delete(), second.delete()])
  })

  test('local files get into the image through addLocalFile and addLocalDir', async () => {
    const big = randomBytes(7 * 1024 * 1024)
    mkdirSync(join(files, 'tree/deep'), { recursive: true })
    writeFileSync(join(files, 'note.txt'), 'a note\n')
    writeFileSync(join(files, 'tree/deep/tool.sh'), '#!/bin/sh\necho it works\n', { mode: 0o755 })
    writeFileSync(join(files, 'tree/big.bin'), big)
    symlinkSync('deep/tool.sh', join(files, 'tree/link'))
    const image = () =>
      Image.base(reference)
        .addLocalFile(join(files, 'note.txt'), '/etc/')
        .addLocalDir(join(files, 'tree'), '/srv/tree')
        .runCommands('cat /etc/note.txt > /made')
    const sandbox = await daytona.create({ image: image() })
    const said = await sandbox.process.executeCommand(
      'cat /made; /srv/tree/link; readlink /srv/tree/link; md5sum /srv/tree/big.bin; stat -c "%a %u" /srv/tree/deep/tool.sh',
    )
    const md5 = createHash('md5').update(big).digest('hex')
    assert.equal(said.result, `a note\nit works\ndeep/tool.sh\n${md5}  /srv/tree/big.bin\n755 0\n`)
    await sandbox.delete()
    // The image depends on the files' contents: changed files make a new image, equal files use the existing one.
    writeFileSync(join(files, 'note.txt'), 'another note\n')
    const other = await daytona.create({ image: image() })
    assert.equal((await other.process.executeCommand('cat /made')).result, 'another note\n')
    await other.delete()
  })

  test('a Dockerfile with COPY builds a snapshot, and the build log names the copied files', async () => {
    mkdirSync(join(files, 'app/src'), { recursive: true })
    for (const name of ['one.txt', 'two.txt', 'three.md']) writeFileSync(join(files, 'app/src', name), name)
    const lines = [
      `FROM ${reference}`,
      'WORKDIR /app',
      'ARG what=src',
      'COPY --chown=7:8 --chmod=640 $what/*.txt texts/',
      'COPY ["src/three.md", "./readme"]',
      'COPY . all',
      'RUN ls texts > /listed',
    ]
    writeFileSync(join(files, 'app/Dockerfile'), lines.join('\n').replace('$what', 'src').replace('\nARG what=src', ''))
    const logs: string[] = []
    const image = Image.fromDockerfile(join(files, 'app/Dockerfile'))
    await daytona.snapshot.create({ name: 'copied', image }, { onLogs: (chunk) => logs.push(chunk) })
    assert.match(logs.join('\n'), /Line 3: COPY --chown=7:8 --chmod=640 src\/\*\.txt texts\/\n2 files, 14 bytes/)
    const sandbox = await daytona.create({ snapshot: 'copied' })
    const said = await sandbox.process.executeCommand(
      'cat /listed /app/readme; stat -c "%a %u %g" /app/texts/one.txt; ls /app/all',
    )
    assert.equal(said.result, 'one.txt\ntwo.txt\nthree.md640 7 8\nDockerfile\nsrc\n')
    await sandbox.delete()
  })

  test('a build fails with the reason if its files are missing; uploaded files survive a crash of the server', async () => {
    const hash = 'c'.repeat(32)
    const wanted = async (name: string) => {
      const buildInfo = { dockerfileContent: `FROM ${reference}\nCOPY hello /hello\n`, contextHashes: [hash] }
      const made = await alcove.api('POST', '/snapshots', { name, buildInfo })
      assert.equal(made.status, 200, JSON.stringify(made.body))
      let { body } = made
      await until(`${name} is made`, async () => {
        body = (await alcove.api('GET', `/snapshots/${name}`)).body
        return ['active', 'build_failed', 'error'].includes(String(body['state']))
      })
      return [body['state'], body['errorReason']]
    }
    assert.deepEqual(await wanted('missing'), [
      'build_failed',
      `The files ${hash} are not here. Upload them, and make the image again.`,
    ])
    const { body } = await alcove.api('GET', '/object-storage/push-access')
    const [accessKeyId, secretAccessKey, sessionToken] = [body['accessKey'], body['secret'], body['sessionToken']]
    const client = new S3Client({
      region: String(body['region']),
      endpoint: String(body['storageUrl']),
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey, sessionToken } as S3ClientCredentials,
    })
    const Key = `${body['organizationId']}/${hash}/context.tar`
    const Body = tarOf([{ path: 'hello', content: 'still here\n' }])
    await client.send(new PutObjectCommand({ Bucket: String(body['bucket']), Key, Body }))
    await alcove.kill('runner')
    assert.deepEqual(await wanted('crashed'), ['active', null])
    const sandbox = await daytona.create({ snapshot: 'crashed' })
    assert.equal((await sandbox.process.executeCommand('cat /hello')).result, 'still here\n')
    await sandbox.delete()
  })
})

type S3ClientCredentials = { accessKeyId: string; secretAccessKey: string; sessionToken: string }
