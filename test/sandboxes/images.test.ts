// Tests images, their entrypoints, and registries that require an account, with the public SDK. Two registries on loopback have an
// image with only busybox.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { Configuration, DockerRegistryApi } from '@daytona/api-client'
import { type Daytona, Image, type Sandbox } from '@daytona/sdk'
import { runCommand } from '#src/kit/run-command.ts'
import { tarOf } from '#src/runner/images/testing/oci-image.ts'
import { TestRegistry } from '#src/runner/images/testing/registry.ts'
import { GuardedRegistry } from '#test/registry/guarded-registry.ts'
import { program, startProgram, userEnvironment } from './alcove-command.ts'
import { until } from './box.ts'
import { makeBusyboxImage, noBusybox } from './busybox-image.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const account = { username: 'team', password: 'hidden-from-everybody' }

let alcove: Platform
let daytona: Daytona
let registry: TestRegistry
/** The test's image registries that serve images only to callers with an account. */
const guarded: GuardedRegistry[] = []
before(async () => {
  registry = await TestRegistry.start()
  for (const way of ['basic', 'token'] as const)
    guarded.push(await GuardedRegistry.guard(await TestRegistry.start(), way, { team: account.password }))
  const hosts = [registry, ...guarded].map(({ host }) => host).join(',')
  alcove = await platform({ own: true, image: 'small', env: { ALCOVE_PLAIN_REGISTRIES: hosts } })
  daytona = connectTo(alcove)
})
after(async () => {
  await daytona?.[Symbol.asyncDispose]()
  await registry?.[Symbol.asyncDispose]()
  for (const each of guarded) {
    await each.registry[Symbol.asyncDispose]()
    await each[Symbol.asyncDispose]()
  }
  await alcove?.[Symbol.asyncDispose]()
})

suite('sandboxes from images', { skip: noBusybox }, () => {
  let reference: string
  /** Directory with files that the SDK uploads for images. */
  const files = mkdtempSync(join(tmpdir(), 'alcove-files-'))
  before(async () => {
    reference = registry.put('team/tool:1', makeBusyboxImage())
  })
  after(async () => {
    rmSync(files, { recursive: true, force: true })
  })

  test('a snapshot is made of an image, and a sandbox is made of the snapshot', async () => {
    const snapshot = await daytona.snapshot.create({ name: 'tool', image: reference })
    assert.equal(snapshot.state, 'active')
    const sandbox = await daytona.create({ snapshot: 'tool' })
    const said = await sandbox.process.executeCommand('cat /etc/motto; echo $FROM_IMAGE')
    assert.deepEqual([said.exitCode, said.result], [0, 'small\nyes\n'])
    await sandbox.delete()
  })

  test('POST /sandbox with the name of an image makes a sandbox, and so does a second call with that name', async () => {
    for (const _ of [1, 2]) {
      const sandbox = await daytona.create({ image: reference, resources: { cpu: 1, memory: 1, disk: 1 } })
      assert.equal(sandbox.state, 'started')
      assert.equal((await sandbox.process.executeCommand('cat /etc/motto')).result, 'small\n')
      await sandbox.delete()
    }
    assert.equal(registry.asked.filter((path) => path.includes('/manifests/')).length < 8, true)
  })

  test('in a sandbox made from a Dockerfile, the Dockerfile’s commands have run; a failed build has a reason', async () => {
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
    // The SDK must print the build log while the image is still being built, not only at the end.
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
    // The SDK's error names only the state `build_failed`. The API also returns the reason of the failed build.
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

  test('a Dockerfile may have several stages, and its FROM may name the built-in snapshot', async () => {
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

  test('sandboxes start in their image’s working directory, even after their snapshot was deleted', async () => {
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

  test('addLocalFile and addLocalDir of the SDK put local files into an image', async () => {
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
    // Change a file that the image contains. The next create must then build a new image instead of using the existing image.
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

  test('a build fails if files for COPY were not uploaded; a crash of the server loses no uploaded files', async () => {
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
      `The files ${hash} are not on the server. Upload them, and build the image again.`,
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

/** A shell script that prints ascending numbers. When it gets SIGTERM, it writes to stderr and exits. */
const counting = `trap 'echo asked >&2; exit 3' TERM; echo $$ > /pid; echo "$OWN $FROM_IMAGE $PWD"; n=0; while :; do n=$((n+1)); echo $n; sleep 0.05; done`

suite('the entrypoint session', { skip: noBusybox }, () => {
  let reference: string
  before(async () => {
    reference = registry.put('team/server:1', makeBusyboxImage({ Cmd: ['sh', '-c', counting], WorkingDir: '/etc' }))
  })

  const commandOf = async ({ process }: Sandbox) => {
    const { sessionId, commands } = await process.getEntrypointSession()
    assert.deepEqual([sessionId, commands?.length], ['entrypoint', 1])
    return commands![0]!
  }
  const linesOf = async ({ process }: Sandbox) =>
    ((await process.getEntrypointLogs()).stdout ?? '').split('\n').filter(Boolean)

  test('the log of an entrypoint can be followed, and the entrypoint survives kill -9 of server programs', async () => {
    await daytona.snapshot.create({ name: 'server', image: reference })
    const sandbox = await daytona.create({ snapshot: 'server', envVars: { OWN: 'mine' } })
    const { id, command, exitCode } = await commandOf(sandbox)
    assert.deepEqual([id, exitCode], ['entrypoint_command', undefined])
    assert.match(command ?? '', /^sh -c 'trap /)
    await until('it counts', async () => (await linesOf(sandbox)).length > 5)
    assert.equal((await linesOf(sandbox))[0], 'mine yes /etc')

    let followed = ''
    const following = sandbox.process.getEntrypointLogs(
      (text) => {
        followed += text
      },
      () => {},
    )
    await until('what comes is followed', () => /\n20\n/.test(followed))
    const before = (await linesOf(sandbox)).length
    await Promise.all([alcove.kill('runner'), alcove.kill('control')])
    // The gate must still send the log without control and runner, because the gate gets the log from the agent.
    await until('it is followed on', () => followed.includes(`\n${before + 20}\n`))
    // Wait until control answers. Calls through the gate would not show whether control runs, because the gate may use cached
    // answers of control.
    const isControlBack = () => daytona.get(sandbox.id).then(Boolean, () => false)
    await until('control is back', isControlBack, 60)
    await until('it went on', async () => (await linesOf(sandbox).catch(() => [])).length > before + 10, 60)
    const lines = await linesOf(sandbox)
    assert.deepEqual(
      lines.slice(1),
      lines.slice(1).map((_, i) => String(i + 1)),
      'one count, without a gap',
    )
    assert.deepEqual(await commandOf(sandbox), { id, command })
    assert.deepEqual(await sandbox.process.listSessions(), [])

    // After the end of its entrypoint, the sandbox keeps running and the entrypoint's log can still be read.
    await sandbox.process.executeCommand('kill -TERM $(cat /pid)')
    await until('its end', async () => (await commandOf(sandbox)).exitCode !== undefined)
    await following
    assert.equal((await commandOf(sandbox)).exitCode, 3)
    assert.match((await sandbox.process.getEntrypointLogs()).stderr ?? '', /asked/)
    assert.equal((await sandbox.process.executeCommand('echo here')).result, 'here\n')

    await sandbox.stop()
    await sandbox.start()
    assert.equal((await commandOf(sandbox)).exitCode, undefined, 'it runs again')
    await sandbox.delete()
  })

  test('`alcove run --image` uses an image, and `alcove logs -f` follows an entrypoint’s log until the end', async () => {
    const home = mkdtempSync(join(tmpdir(), 'alcove-logs-'))
    const alcoveSays = async (...args: string[]) => {
      const options = { env: userEnvironment(home, alcove), cwd: home, input: '\n' }
      const { code, out, err } = await startProgram(process.execPath, [program, ...args], options).ended
      assert.equal(code, 0, err)
      return { out, err }
    }
    try {
      const image = registry.put('team/tool:2', makeBusyboxImage())
      assert.equal((await alcoveSays('run', '--image', image, '--disk', '1', '--', 'cat', '/etc/motto')).out, 'small\n')
      const brief = 'echo begins; echo aside >&2; until [ -e /go ]; do sleep 0.1; done; echo ends'
      const logged = registry.put('team/brief:1', makeBusyboxImage({ Cmd: ['sh', '-c', brief] }))
      await alcoveSays('sandbox', 'create', '--name', 'logged', '--image', logged, '--disk', '1')
      const options = { env: userEnvironment(home, alcove), cwd: home, input: '\n' }
      const following = startProgram(process.execPath, [program, 'logs', '-f', 'logged'], options)
      await following.until('begins')
      await alcoveSays('exec', 'logged', '--', 'sh', '-c', 'echo > /go')
      assert.deepEqual(await following.ended, { code: 0, out: 'begins\nends\n', err: 'aside\n' })
      assert.deepEqual(await alcoveSays('logs', 'logged'), { out: 'begins\nends\n', err: 'aside\n' })
      assert.match((await alcoveSays('logs', '--build', 'logged')).out, /team\/brief/)
      await alcoveSays('sandbox', 'delete', 'logged')
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })

  test('the entrypoint is the image’s ENTRYPOINT with CMD; the entrypoint of a snapshot replaces both', async () => {
    const image = () => Image.base(reference).entrypoint(['echo', 'of the definition'])
    const sandbox = await daytona.create({ image: image().cmd(['and more']) })
    await until('its end', async () => (await commandOf(sandbox)).exitCode === 0)
    assert.deepEqual(await linesOf(sandbox), ['of the definition and more'])
    await daytona.snapshot.create({ name: 'own', image: image(), entrypoint: ['echo', 'of the snapshot'] })
    const other = await daytona.create({ snapshot: 'own' })
    await until('its end', async () => (await commandOf(other)).exitCode === 0)
    assert.deepEqual(await linesOf(other), ['of the snapshot'])
    await Promise.all([sandbox.delete(), other.delete()])
  })

  test('an entrypoint runs as the USER of its image, with the group that USER names, once at each start', async () => {
    const tells = 'echo started; stat -L -c "%u %g" /proc/self; sleep 1000'
    const config = { Entrypoint: ['sh', '-c', tells], User: '1234:70' }
    const image = registry.put('team/user:1', makeBusyboxImage(config))
    const sandbox = await daytona.create({ image })
    const lines = ['started', '1234 70']
    await until('it has told', async () => (await linesOf(sandbox)).length >= lines.length)
    assert.deepEqual(await linesOf(sandbox), lines)
    await sandbox.stop()
    await sandbox.start()
    await until('it has told again', async () => (await linesOf(sandbox)).length >= lines.length)
    assert.deepEqual(await linesOf(sandbox), lines)
    await sandbox.delete()
  })

  test('an entrypoint that must be process 1 fails, and its log suggests tini or dumb-init', async () => {
    const image = registry.put('team/init:1', makeBusyboxImage({ Entrypoint: ['/bin/busybox', 'init'] }))
    const sandbox = await daytona.create({ image })
    await until('its end', async () => (await commandOf(sandbox)).exitCode !== undefined)
    const { stderr = '' } = await sandbox.process.getEntrypointLogs()
    assert.match(stderr, /must be run as PID 1\n\n\[not process 1: .*s6-overlay.*tini or dumb-init\.\]\n$/)
    assert.equal((await sandbox.process.executeCommand('echo here')).result, 'here\n')
    await sandbox.delete()
  })

  test('if an entrypoint is killed for lack of memory, its command has `oom: true`; the log names the limit', async () => {
    const grows = 'x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done'
    await daytona.snapshot.create({ name: 'hungry', image: reference, entrypoint: ['sh', '-c', grows] })
    const sandbox = await daytona.create({ snapshot: 'hungry' })
    await until('its end', async () => (await commandOf(sandbox)).exitCode !== undefined)
    const { exitCode, oom } = (await commandOf(sandbox)) as { exitCode?: number; oom?: boolean }
    assert.deepEqual([exitCode, oom], [137, true])
    assert.match((await sandbox.process.getEntrypointLogs()).stderr ?? '', /out of memory: .* the limit of \d+ GiB/)
    await sandbox.delete()
  })
})

suite('private images', { skip: noBusybox }, () => {
  let registries: DockerRegistryApi
  before(() => {
    registries = new DockerRegistryApi(
      new Configuration({ accessToken: alcove.key, basePath: `${alcove.url}/api`, baseOptions: {} }),
    )
  })

  const stateOf = async (name: string) => (await alcove.api('GET', `/snapshots/${name}`)).body
  const settled = async (name: string) => {
    await until('the snapshot is settled', async () =>
      ['active', 'error', 'build_failed'].includes(String((await stateOf(name))['state'])),
    )
    return stateOf(name)
  }

  test('snapshots and builds pull images with the organization’s registry account and the newest password', async () => {
    const [basic, token] = guarded as [GuardedRegistry, GuardedRegistry]
    const tool = basic.registry.put('team/tool:1', makeBusyboxImage())
    const other = token.registry.put('team/other:1', makeBusyboxImage())
    await alcove.api('POST', '/snapshots', { name: 'early', imageName: tool })
    assert.match(String((await settled('early'))['errorReason']), /wants credentials/)

    await assert.rejects(
      registries.createRegistry({ name: 'team', url: basic.host, ...account, password: 'wrong' }),
      ({ response }: { response: { status: number } }) => response.status === 400,
    )
    for (const { host } of guarded) await registries.createRegistry({ name: 'team', url: `http://${host}`, ...account })
    const { data } = await registries.listRegistries()
    assert.deepEqual(
      data.map(({ username, registryType }) => [username, registryType]),
      [
        ['team', 'organization'],
        ['team', 'organization'],
      ],
    )

    const snapshot = await daytona.snapshot.create({ name: 'private', image: tool })
    assert.equal(snapshot.state, 'active')
    const image = Image.base(other).dockerfileCommands([`COPY --from=${tool} /etc/motto /etc/second`])
    const logs: string[] = []
    const sandbox = await daytona.create({ image }, { onSnapshotCreateLogs: (chunk) => logs.push(chunk) })
    assert.equal((await sandbox.process.executeCommand('cat /etc/motto /etc/second')).result, 'small\nsmall\n')
    await sandbox.delete()
    assert.doesNotMatch(logs.join(''), /hidden-from/)

    // Change the password at the image registry. Pulls must then fail until the organization has stored the new password in Alcove.
    basic.accounts.set('team', 'hidden-from-everybody-2')
    await alcove.api('POST', '/snapshots/early/activate')
    assert.match(String((await settled('early'))['errorReason']), /does not show it to the account/)
    const registry = data.find(({ url }) => url.endsWith(basic.host))
    assert.ok(registry)
    const { id, name, url, username } = registry
    await registries.updateRegistry(id, { name, url, username, password: 'hidden-from-everybody-2' })
    await alcove.api('POST', '/snapshots/early/activate')
    assert.equal((await settled('early'))['state'], 'active')

    for (const each of data) await registries.deleteRegistry(each.id)
    await alcove.api('POST', '/snapshots', { name: 'late', imageName: tool })
    assert.match(String((await settled('late'))['errorReason']), /wants credentials/)

    // No file in the server's data directory may contain a password.
    const found = await runCommand(['sh', '-c', `grep -rlF hidden-from ${alcove.data} || true`], { timeoutMs: 60_000 })
    assert.equal(String(found).trim(), '')
  })
})

type S3ClientCredentials = { accessKeyId: string; secretAccessKey: string; sessionToken: string }
