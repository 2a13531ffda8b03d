// Builds the ten Dockerfiles of docs/reference/dockerfiles.md. The two base images, a Debian system from mmdebstrap and an image
// with busybox, come from a registry on loopback.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, suite, test } from 'node:test'
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import type { Daytona } from '@daytona/sdk'
import { FairQueue } from '#src/kit/queue.ts'
import { definitions } from '#src/runner/images/definition/testing/definitions.ts'
import { type TarEntry, tarOf } from '#src/runner/images/testing/oci-image.ts'
import { TestRegistry } from '#src/runner/images/testing/registry.ts'
import { until } from './box.ts'
import { makeBusyboxImage, noBusybox } from './busybox-image.ts'
import { makeDebianImage } from './debian-image.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const files: TarEntry[] = [
  { path: 'requirements.txt', content: 'greet\n' },
  { path: 'greet.py', content: 'def hello(): return "hello from python"\n' },
  { path: 'main.py', content: 'import greet; print(greet.hello())\n' },
  { path: 'package.json', content: '{"name":"app","type":"module","scripts":{"build":"node build.js"}}\n' },
  {
    path: 'build.js',
    content: 'import fs from "fs"; fs.mkdirSync("dist"); fs.writeFileSync("dist/app.js", "console.log(6*7)")\n',
  },
  { path: 'public', type: '5' },
  { path: 'public/index.html', content: '<h1>static</h1>\n' },
  { path: 'node_modules', type: '5' },
  { path: 'node_modules/huge', content: 'left out' },
  { path: '.dockerignore', content: 'node_modules\n' },
]

type Pattern = { name: string; lines: string[]; command: string; says: string }

/**
 * Returns Dockerfiles, each with a command for the image and the output that the command must print. `base`: the Debian system.
 * `tool`: an image with busybox.
 */
const patternsOn = ({ base, tool }: { base: string; tool: string }): Pattern[] => [
  {
    name: 'python, virtual environment in stages',
    lines: [
      `FROM ${base} AS builder`,
      'RUN python3 -m venv --without-pip /opt/venv',
      'COPY greet.py /opt/venv/lib/',
      'RUN cp /opt/venv/lib/greet.py $(/opt/venv/bin/python -c "import site; print(site.getsitepackages()[0])")',
      `FROM ${base}`,
      'COPY --from=builder /opt/venv /opt/venv',
      'ENV PATH="/opt/venv/bin:$PATH"',
      'WORKDIR /app',
      'COPY main.py .',
    ],
    command: 'python main.py; which python',
    says: 'hello from python\n/opt/venv/bin/python\n',
  },
  {
    name: 'node in stages',
    lines: [
      `FROM ${base} AS build`,
      'WORKDIR /src',
      'COPY package.json ./',
      'COPY . .',
      'RUN node build.js && test ! -e node_modules',
      `FROM ${base}`,
      'RUN useradd app',
      'COPY --from=build --chown=app /src/dist /app',
    ],
    command: 'node /app/app.js; stat -c %U /app/app.js',
    says: '42\napp\n',
  },
  {
    name: 'go, from scratch',
    lines: [
      `FROM ${tool} AS build`,
      'RUN mkdir /out && cat /bin/busybox > /out/app',
      'FROM scratch',
      'COPY --from=build --chmod=755 /out/app /bin/sh',
      'COPY --from=build --chmod=755 /out/app /bin/cat',
      'COPY --from=0 /etc/motto /motto',
      'ENTRYPOINT ["/bin/sh"]',
    ],
    command: 'cat /motto',
    says: 'small\n',
  },
  {
    name: 'go, caches and a bind of everything',
    lines: [
      `FROM ${base}`,
      'RUN --mount=type=cache,target=/root/.cache/x --mount=type=bind,target=/src echo built > /root/.cache/x/o && ls /src > /listed',
      'RUN --mount=type=cache,target=/root/.cache/x cp /root/.cache/x/o /out',
    ],
    command: 'cat /out; grep -c main.py /listed; ls /src 2>/dev/null',
    says: 'built\n1\n',
  },
  {
    name: 'ubuntu with pipefail',
    lines: [
      `FROM ${base}`,
      'SHELL ["/bin/bash", "-o", "pipefail", "-c"]',
      'RUN ! false | true',
      'RUN [[ -n $BASH_VERSION ]] && echo bash | tee /shell',
    ],
    command: 'cat /shell',
    says: 'bash\n',
  },
  {
    name: 'busybox httpd',
    lines: [`FROM ${tool}`, 'COPY public /www', 'EXPOSE 80', 'HEALTHCHECK CMD cat /www', 'CMD ["httpd", "-f"]'],
    command: 'cat /www/index.html',
    says: '<h1>static</h1>\n',
  },
  {
    name: 'benchmark, patch as a here-document',
    lines: [
      `FROM ${base}`,
      'WORKDIR /repo',
      'RUN git init -q . && printf "one\\n" > a && git add a',
      'COPY <<EOF fix.patch',
      '--- a/a',
      '+++ b/a',
      '@@ -1 +1 @@',
      '-one',
      '+two',
      'EOF',
      'RUN git apply fix.patch',
    ],
    command: 'cat a',
    says: 'two\n',
  },
  {
    name: 'several here-documents for the shell',
    lines: [
      `FROM ${base}`,
      'RUN <<EOF',
      'set -e',
      'for n in 1 2; do echo $n >> /counted; done',
      'EOF',
      'RUN <<EOF',
      '#!/usr/bin/env python3',
      'print("from a script", file=open("/said", "w"))',
      'EOF',
    ],
    command: 'cat /counted /said',
    says: '1\n2\nfrom a script\n',
  },
  {
    name: "devcontainer with a user of one's own",
    lines: [
      `FROM ${base}`,
      'ARG NAME=dev',
      'ARG ID=4242',
      'RUN useradd --create-home --uid $ID $NAME',
      'USER $NAME',
      'WORKDIR /home/$NAME',
      'RUN echo mine > file',
    ],
    command: 'id -un; pwd; stat -c %u file',
    says: 'dev\n/home/dev\n4242\n',
  },
  {
    name: 'ADD of an archive that came along',
    lines: [
      `ARG BASE=${base}`,
      'FROM --platform=$BUILDPLATFORM $BASE',
      'LABEL maintained=yes',
      'ADD files.tar.xz /unpacked/',
      'ONBUILD RUN false',
    ],
    command: 'cat /unpacked/inner',
    says: 'packed\n',
  },
]

suite('ten patterns of Dockerfiles', { skip: noBusybox }, () => {
  let alcove: Platform
  let registry: TestRegistry
  let daytona: Daytona
  let patterns: Pattern[]
  const hash = 'd'.repeat(32)
  before(async () => {
    registry = await TestRegistry.start()
    const base = registry.put('library/debian:1', await makeDebianImage(['python3', 'git', 'nodejs']))
    patterns = patternsOn({ base, tool: registry.put('team/tool:1', makeBusyboxImage()) })
    alcove = await platform({ own: true, image: 'small', env: { ALCOVE_PLAIN_REGISTRIES: registry.host } })
    daytona = connectTo(alcove)
    await upload()
  })
  after(async () => {
    await daytona?.[Symbol.asyncDispose]()
    await registry?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const upload = async () => {
    const { body } = await alcove.api('GET', '/object-storage/push-access')
    const [accessKeyId, secretAccessKey, sessionToken] = [body['accessKey'], body['secret'], body['sessionToken']]
    const client = new S3Client({
      region: String(body['region']),
      endpoint: String(body['storageUrl']),
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey, sessionToken } as {
        accessKeyId: string
        secretAccessKey: string
        sessionToken: string
      },
    })
    const packed = execFileSync('xz', ['-c'], { input: tarOf([{ path: 'inner', content: 'packed\n' }]) })
    const Key = `${body['organizationId']}/${hash}/context.tar`
    const Body = tarOf([...files, { path: 'files.tar.xz', content: packed }])
    await client.send(new PutObjectCommand({ Bucket: String(body['bucket']), Key, Body }))
  }

  const made = async (name: string, lines: readonly string[]) => {
    const buildInfo = { dockerfileContent: lines.join('\n'), contextHashes: [hash] }
    const reply = await alcove.api('POST', '/snapshots', { name, buildInfo })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    let { body } = reply
    const isOver = async () => {
      body = (await alcove.api('GET', `/snapshots/${name}`)).body
      return ['active', 'build_failed', 'error'].includes(String(body['state']))
    }
    await until(`${name} is made`, isOver, 240)
    assert.deepEqual([body['state'], body['errorReason']], ['active', null])
  }

  test('ten Dockerfiles are built, and commands in their sandboxes print the expected output', async () => {
    assert.equal(patterns.length, 10)
    const inTable = new Set(definitions.map(({ name }) => name))
    for (const { name } of patterns) assert.ok(inTable.has(name), name)
    // Build two images at a time, because a runner builds at most two images of one organization at the same time.
    const builds = new FairQueue({ atOnce: 2 })
    const results = await Promise.all(
      patterns.map(({ name, lines, command }, at) =>
        builds.run(async () => {
          await made(`pattern-${at}`, lines)
          const sandbox = await daytona.create({ snapshot: `pattern-${at}` })
          const { result } = await sandbox.process.executeCommand(command)
          await sandbox.delete()
          return [name, result]
        }),
      ),
    )
    assert.deepEqual(
      results,
      patterns.map(({ name, says }) => [name, says]),
    )
  })

  test('if only a Dockerfile’s last line changes, the build’s log shows that all other lines were cached', async () => {
    const [{ lines }] = patterns as [Pattern]
    await made('again', [...lines, 'RUN echo last > /tmp/last'])
    const { url } = (await alcove.api('GET', '/snapshots/again/build-logs-url')).body
    const log = await fetch(`${url}`, { headers: { authorization: `Bearer ${alcove.key}` } })
    const text = await log.text()
    const cached = [...text.matchAll(/^\[\w+\] Line (\d+): cached: /gm)].map(([, line]) => Number(line))
    assert.deepEqual(
      cached.sort((a, b) => a - b),
      [2, 3, 4, 6, 8, 9],
    )
    assert.match(text, /^\[1\] Line 10: echo last/m)
  })
})
