// Tests builds with several stages, mounts and here-documents, in real sandboxes with a registry on loopback. Needs root.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, suite, test } from 'node:test'
import { agentAt } from '#src/toolbox/agent/agent.ts'
import { needsRoot } from '#test/needs-root.ts'
import { DirectoryStore } from '../archive/directory-store.ts'
import { ContextStore } from '../contexts/store.ts'
import { makeImage, type TarEntry, tarOf } from '../images/testing/oci-image.ts'
import { TestRegistry } from '../images/testing/registry.ts'
import { openBuilding } from '../testing/building.ts'
import { busyboxFiles, needsBusybox } from '../testing/busybox-files.ts'
import { cannotMapOwners, TestHost } from '../testing/test-host.ts'
import type { AllImages, ToBring } from './all-images.ts'

const skip = needsRoot || needsBusybox

suite('a definition with several stages', { skip }, () => {
  let box: TestHost
  let registry: TestRegistry
  let images: AllImages
  let from: string
  let tools: string
  let count = 0

  before(async () => {
    box = await TestHost.start()
    registry = await TestRegistry.start()
    const config = { Env: ['PATH=/bin', 'BASE=yes'] }
    from = registry.put('busybox:1', makeImage({ layers: [tarOf(busyboxFiles())], config }))
    tools = registry.put(
      'tools:1',
      makeImage({ layers: [tarOf([{ path: 'opt/tool', content: 'a tool\n', mode: 0o755 }])] }),
    )
    await box.close()
    const opened = await openBuilding(box.instance, box.directory, registry.host)
    box.use(opened)
    images = opened.images
  })
  after(async () => {
    await registry[Symbol.asyncDispose]()
    await box[Symbol.asyncDispose]()
  })

  const contexts = () => new ContextStore(new DirectoryStore(join(box.directory, 'contexts')))
  /** Builds the image of a definition. Returns the image's name and the log of the build. */
  const build = async (lines: string[], entries?: TarEntry[], snapshots: Record<string, string> = {}) => {
    count += 1
    const image = `built-${count}`
    const of = { organizationId: 'o', hash: String(count).padStart(32, '0') }
    if (entries) await contexts().put(of, Readable.from([tarOf(entries)]))
    const files = entries ? { contexts: { organizationId: 'o', hashes: [of.hash] } } : {}
    const dockerfile = lines.join('\n')
    const wanted: ToBring = {
      image,
      target: 'present',
      maxGiB: 1,
      source: { kind: 'definition', dockerfile, snapshots, ...files },
    }
    let log = ''
    const known = await images.bring(wanted, {
      signal: new AbortController().signal,
      onProgress: () => {},
      onText: (text) => {
        log += text
      },
    })
    return { image, log, config: known.config }
  }
  /** Builds an image, and returns the output of a command in a sandbox of this image. */
  const said = async (lines: string[], command: string, entries?: TarEntry[]) => {
    const { image } = await build(lines, entries)
    const { sandboxId } = await box.started({ image, isNew: true, user: 'root' })
    const { output } = await box.run(sandboxId, command)
    await box.host.destroy(sandboxId)
    assert.equal(await images.remove(image), true)
    return output
  }
  const leavesNothing = async () => {
    assert.deepEqual(box.host.list(), [])
    assert.deepEqual(await box.host.templates(), [])
    assert.deepEqual(
      images.list().filter((image) => image !== 'small'),
      [],
    )
  }

  test('a Dockerfile may create files that belong to user ids above 65535, and may set such an id with USER', async (t) => {
    if (!(await box.mapsOwners())) return t.skip(cannotMapOwners)
    const lines = [
      `FROM ${from} AS first`,
      'RUN echo far > /far && chown 2000000:95607 /far',
      `FROM ${from}`,
      'COPY --from=first /far /far',
      'COPY --chown=1000660000:0 hello /hello',
      'USER 1000660000',
      'RUN echo "$(id -u) $(id -g)" > /tmp/me',
    ]
    const output = await said(lines, 'stat -c "%u %g" /far /hello /tmp/me; cat /tmp/me', [
      { path: 'hello', content: 'hello\n' },
    ])
    assert.deepEqual(output.split('\n'), ['2000000 95607', '1000660000 0', '1000660000 0', '1000660000 0'])
  })

  test('a stage can copy from other stages or images, or be built on a stage; unneeded stages are not built', async () => {
    const lines = [
      'ARG VERSION=7',
      `FROM --platform=$BUILDPLATFORM ${from} AS deps`,
      'ARG VERSION',
      'WORKDIR /src/deep',
      'RUN echo "deps $VERSION" > dep; ln -s deep/dep ../link; ln -s /nowhere ../dangling; chown app:app dep; chmod 640 dep; mkfifo ../pipe',
      `FROM ${from} AS unneeded`,
      'RUN exit 9',
      'FROM deps AS build',
      'RUN cat dep > /out; echo more >> /out',
      `FROM ${from}`,
      'COPY --from=build /out /out',
      'COPY --from=deps /src /copied',
      'COPY --from=0 /src/link /followed',
      'COPY --from=deps --chown=app /src/de*p/dep /pattern/',
      `COPY --from=${tools} /opt/tool /opt/tool`,
      'ENV A=$BASE',
      'USER app',
    ]
    const output = await said(
      lines,
      'cat /out /followed /opt/tool; cd /copied; ls; /bin/busybox readlink link; /bin/busybox readlink dangling; stat -c "%u %g %a" deep/dep /pattern/dep /opt/tool; ls -a / | grep alcove',
    )
    assert.deepEqual(output.split('\n'), [
      ...['deps 7', 'more', 'deps 7', 'a tool', 'dangling', 'deep', 'link', 'deep/dep', '/nowhere'],
      ...['1000 1000 640', '1000 1000 640', '0 0 755'],
    ])
    await leavesNothing()
  })

  test('in a build, each user set by USER may use sudo; COPY does not copy the sudo program that Alcove adds', async () => {
    const lines = [
      `FROM ${from} AS first`,
      'USER app',
      'RUN id -u > /tmp/me; sudo id -u > /tmp/root; sudo mkdir /made',
      `FROM ${from}`,
      'COPY --from=first /bin /copied',
      'COPY --from=first /tmp/me /tmp/root /',
    ]
    const output = await said(lines, 'cat /me /root; ls /copied/sh; ls /copied/sudo || echo none; sudo id -u')
    const lineByLine = output.split('\n').filter((line) => !line.startsWith('ls:'))
    assert.deepEqual(lineByLine, ['1000', '0', '/copied/sh', 'none', '0'])
    await leavesNothing()
  })

  test('a build runs at most two independent stages at the same time, and each log line names its stage', async () => {
    const names = ['one', 'two', 'three']
    const stages = names.flatMap((name) => [`FROM ${from} AS ${name}`, `RUN echo begin; sleep 1; printf end`])
    const { image, log } = await build([
      ...stages,
      `FROM ${from}`,
      ...names.map((name) => `COPY --from=${name} /bin/sh /x`),
    ])
    const events = [...log.matchAll(/^\[(\w+)\] (begin|end)$/gm)].map(([, name, event]) => ({ name, event }))
    assert.equal(events.length, 6)
    let [running, most] = [0, 0]
    for (const { event } of events) {
      running += event === 'begin' ? 1 : -1
      most = Math.max(most, running)
    }
    assert.equal(most, 2)
    assert.match(log, /^\[3\] Line 9: COPY --from=two/m)
    assert.equal(await images.remove(image), true)
    await leavesNothing()
  })

  test('if a stage fails, all other stages are cancelled, and the build reports the error of that stage', async () => {
    const failing = [`FROM ${from} AS slow`, 'RUN sleep 600', `FROM ${from} AS bad`, 'RUN echo sorry; exit 3']
    await assert.rejects(build([...failing, `FROM ${from}`, 'COPY --from=slow /x /x', 'COPY --from=bad /x /x']), {
      name: 'ImageFailed',
      message: 'Line 4: exit code 3\nsorry',
    })
    await leavesNothing()
    const missing = [`FROM ${from} AS slow`, 'RUN sleep 600', `FROM ${registry.host}/none:1 AS bad`, 'RUN true']
    await assert.rejects(build([...missing, `FROM ${from}`, 'COPY --from=slow /x /x', 'COPY --from=bad /x /x']), {
      message: /There is no image .*none:1/,
    })
    await leavesNothing()
  })

  test('each RUN has the group that USER names; a numeric user that does not exist has group 0', async () => {
    const { image, config } = await build([
      `FROM ${from}`,
      'USER 4242',
      'RUN id -u > /tmp/a; id -G >> /tmp/a',
      'USER app:77',
      'RUN id -u > /tmp/b; id -G >> /tmp/b',
    ])
    assert.equal(config?.user, 'app:77')
    const { sandboxId } = await box.started({ image, isNew: true, user: config.user })
    const { output } = await box.run(sandboxId, 'cat /tmp/a /tmp/b')
    assert.deepEqual(output.split('\n'), ['4242', '0', '1000', '77'])
    await box.host.destroy(sandboxId)
    await images.remove(image)
  })

  test('an image of FROM scratch has only the files that are copied into it', async () => {
    const { image, config } = await build([
      `FROM ${from} AS b`,
      'RUN echo x > /x',
      'FROM scratch',
      'COPY --from=b /bin/busybox /app',
      'COPY --from=b /x /data/x',
      'ENTRYPOINT ["/app", "cat", "/data/x"]',
    ])
    assert.deepEqual(config?.entrypoint, ['/app', 'cat', '/data/x'])
    const { sandboxId } = await box.started({ image, isNew: true, user: 'root' })
    const files = agentAt(box.host.get(sandboxId)?.socketPath as string).files('0')
    const names: string[] = []
    for await (const { path } of files.list('/')) names.push(path.toString())
    assert.deepEqual(names.sort(), ['app', 'data', 'dev', 'etc', 'proc', 'sys'])
    await box.host.destroy(sandboxId)
    await images.remove(image)
    await leavesNothing()
  })

  test('lines of a build with the same cache mount share its files; a bind or tmpfs mount lasts for one line', async () => {
    const output = await said(
      [
        `FROM ${from} AS other`,
        'RUN echo of the stage > /file',
        `FROM ${from}`,
        'RUN --mount=type=cache,target=/var/lib/pkg ls /var/lib/pkg; echo cached > /var/lib/pkg/new',
        'RUN --mount=type=cache,target=/var/lib/pkg,sharing=locked --mount=type=cache,id=b,target=/root/.cache/b cat /var/lib/pkg/new > /seen; echo > /root/.cache/b/x',
        'RUN ls /var/lib/pkg /root > /after 2>&1; true',
        'RUN --mount=type=bind,from=other,source=/file,target=/bound --mount=target=/ctx --mount=type=tmpfs,target=/tmp cat /bound /ctx/sub/f >> /seen; echo gone > /tmp/x; echo gone > /ctx/y',
        'RUN --mount=type=secret,id=key test ! -e /run/secrets/key',
      ],
      'cat /seen /after /var/lib/pkg/list; ls /tmp; ls -d /bound /ctx /root /.alcove-build 2>&1',
      [
        { path: 'sub', type: '5' },
        { path: 'sub/f', content: 'of the files\n' },
      ],
    )
    assert.deepEqual(output.split('\n'), [
      ...['cached', 'of the stage', 'of the files', 'ls: /root: No such file or directory', '/var/lib/pkg:', 'list'],
      ...['of the image', 'ls: /bound: No such file or directory', 'ls: /ctx: No such file or directory'],
      ...['ls: /root: No such file or directory', 'ls: /.alcove-build: No such file or directory'],
    ])
    await leavesNothing()
  })

  test('a Dockerfile may have here-documents; a stage inherits SHELL and ONBUILD of its base', async () => {
    const output = await said(
      [
        `FROM ${from} AS base`,
        'SHELL ["/bin/sh", "-eu", "-c"]',
        'ONBUILD RUN echo triggered $0 > /trigger',
        'FROM base',
        'ARG NAME=world',
        'RUN <<EOF',
        'echo one > /one',
        '# not a comment of the definition',
        'echo "$NAME" >> /one',
        'EOF',
        'RUN <<-"END" cat > /two && echo behind >> /two',
        '\tkept $NAME',
        '\tEND',
        'RUN <<EOF',
        '#!/bin/cat',
        'a script of its own',
        'EOF',
        "COPY <<EOF <<-'RAW' /files/",
        // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the definition.
        'hello $NAME \\$NAME "${NONE:-none}"',
        'EOF',
        '\traw $NAME',
        'RAW',
        'COPY --chmod=750 --chown=app <<run.sh /run.sh',
        'x',
        'run.sh',
      ],
      'cat /trigger /one /two /files/EOF /files/RAW /run.sh; stat -c "%u %a" /run.sh',
    )
    assert.deepEqual(output.split('\n'), [
      ...['triggered /bin/sh', 'one', 'world', 'kept $NAME', 'behind', 'hello world $NAME "none"', 'raw $NAME', 'x'],
      '1000 750',
    ])
    await leavesNothing()
  })

  test('a definition may build on a snapshot’s disk and configuration, and the snapshot can then be removed', async () => {
    const below = await build([
      `FROM ${from}`,
      'ENV A=1',
      'RUN echo below > /below',
      'USER app',
      'ENTRYPOINT ["/bin/sh"]',
    ])
    const plain = 'plain'
    const source = { kind: 'registry', reference: from } as const
    await images.bring(
      { image: plain, target: 'present', maxGiB: 1, source },
      { signal: new AbortController().signal, onProgress: () => {} },
    )
    const snapshots = { Mine: below.image, plain }
    const lines = [
      'FROM Mine AS one',
      'ENV B=$A$A',
      'USER root',
      'RUN echo "$B $BASE" > /above',
      'FROM one',
      'COPY --from=plain /var/lib/pkg/list /from-plain',
      'COPY --from=Mine /below /from-mine',
    ]
    const { image, config } = await build(lines, undefined, snapshots)
    assert.deepEqual([config?.env['B'], config?.user, config?.entrypoint], ['11', 'root', ['/bin/sh']])
    const renamed = await build(['FROM plain', 'ENV C=3'], undefined, snapshots)
    assert.equal(await images.remove(below.image), true)
    assert.equal(await images.remove(plain), true)
    const { sandboxId } = await box.started({ image, isNew: true, user: 'root' })
    const { output } = await box.run(sandboxId, 'cat /below /above /from-plain /from-mine')
    assert.deepEqual(output.split('\n'), ['below', '11 yes', 'of the image', 'below'])
    assert.equal(images.configOf((await box.host.imageOf(sandboxId)) as string)?.env['B'], '11')
    await box.host.destroy(sandboxId)
    await assert.rejects(build(['FROM Mine'], undefined, snapshots), /is not on this runner/)
    for (const each of [image, renamed.image]) assert.equal(await images.remove(each), true)
    await leavesNothing()
  })

  test('.dockerignore, --exclude and --parents decide which files are copied, and to which paths', async () => {
    const file = (path: string): TarEntry => ({ path, content: path })
    const names = [
      '.dockerignore',
      'a.txt',
      'a.log',
      'node_modules/x/y',
      'src/deep/b.ts',
      'src/deep/b.test.ts',
      'keep/k.log',
    ]
    const entries = names.map(file)
    entries[0] = { path: '.dockerignore', content: '# what is not needed\n**/*.log\nnode_modules\n!keep/k.log\n' }
    const output = await said(
      [
        `FROM ${from}`,
        'COPY . /all',
        'COPY --exclude=**/*.test.ts src /src',
        'COPY --parents src/./deep/b.ts a.txt /parents/',
      ],
      'cd /; /bin/busybox find all src parents -type f | /bin/busybox sort',
      entries,
    )
    assert.deepEqual(output.split('\n'), [
      ...['all/.dockerignore', 'all/a.txt', 'all/keep/k.log', 'all/src/deep/b.test.ts', 'all/src/deep/b.ts'],
      ...['parents/a.txt', 'parents/deep/b.ts', 'src/deep/b.ts'],
    ])
    await leavesNothing()
  })

  test('ADD downloads URLs, verifies checksums, and unpacks archives that come with the Dockerfile', async () => {
    const content = Buffer.from('from the web\n')
    const digest = createHash('sha256').update(content).digest('hex')
    registry.onRequest = (path, answer) => {
      if (path === '/moved') return { status: 404, type: 'text/plain', body: Buffer.from('gone') }
      return path.startsWith('/files/') ? { status: 200, type: 'text/plain', body: content } : answer
    }
    const web = `http://${registry.host}`
    // 1500 nested directories: looking up each path from the root directory would take minutes.
    const deep = Array.from({ length: 1500 }, (_, at) => ({ path: 'd/'.repeat(at + 1), type: '5' as const }))
    const packed = tarOf([{ path: 'inner/file', content: 'packed\n' }, ...deep])
    const archive = execFileSync('xz', ['-c'], { input: packed })
    const output = await said(
      [
        `FROM ${from}`,
        `ADD --checksum=sha256:${digest} ${web}/files/a%20b.txt?x=1 /got/`,
        `ADD --chmod=644 --chown=app ${web}/files/x /renamed`,
        `ADD ${web}/files/one ${web}/files/two local /several/`,
        'ADD packed.tar.xz /unpacked/',
      ],
      'cat "/got/a b.txt" /renamed /unpacked/inner/file; cd /; stat -c "%a %u" "got/a b.txt" renamed; ls several; /bin/busybox find unpacked -type d -name d | /bin/busybox wc -l',
      [
        { path: 'packed.tar.xz', content: archive },
        { path: 'local', content: '' },
      ],
    )
    assert.deepEqual(output.split('\n'), [
      ...['from the web', 'from the web', 'packed', '600 0', '644 1000', 'local', 'one', 'two', '1500'],
    ])
    for (const [line, message] of [
      [
        `ADD --checksum=sha256:${'0'.repeat(64)} ${web}/files/x /x`,
        `Line 2: The file does not match --checksum: its digest is sha256:${digest}.`,
      ],
      [`ADD ${web}/moved /x`, `Line 2: ${registry.host} answered with 404.`],
      ['ADD http://127.0.0.1:1/x /x', /^Line 2: 127\.0\.0\.1:1 is not on the public Internet, and ADD fetches only/],
      ['ADD http://2130706433/x /x', /^Line 2: 127\.0\.0\.1 is not on the public Internet/],
      ['ADD https://10.0.0.1/x /x', /^Line 2: 10\.0\.0\.1 is not on the public Internet/],
      ['ADD http://[::1]:1/x /x', /^Line 2: \[::1\]:1 is not on the public Internet/],
      ['ADD http://[::ffff:127.0.0.1]:1/x /x', /^Line 2: \[::ffff:7f00:1\]:1 is not on the public Internet/],
      ['ADD http://169.254.169.254/latest/meta-data /x', /is not on the public Internet/],
    ] as const)
      await assert.rejects(build([`FROM ${from}`, line]), { name: 'ImageFailed', message })
    await leavesNothing()
  })

  test('a build’s error names the failed Dockerfile line; COPY never follows a symbolic link out of a stage', async () => {
    for (const [lines, message] of [
      [[`FROM ${from} AS a`, 'RUN exit 3', `FROM ${from}`, 'COPY --from=a /x /x'], /^Line 2: exit code 3$/],
      [[`FROM ${from} AS a`, `FROM ${from}`, 'COPY --from=a /none /x'], /^Line 3: there is no \/none in stage 0$/],
      [
        [
          `FROM ${from} AS a`,
          'RUN ln -s ../../../../../../etc/shadow /out; ln -s /loop /loop',
          `FROM ${from}`,
          'COPY --from=a /out /x',
        ],
        /^Line 4: there is no \/out in stage 0$/,
      ],
      [
        [`FROM ${from} AS a`, 'RUN ln -s /loop /loop', 'FROM scratch', 'COPY --from=a /loop /x'],
        /there is no \/loop in stage 0/,
      ],
      [
        [`FROM ${from}`, `COPY --from=${registry.host}/none:1 /x /x`],
        /^Line 2: from=.*\/none:1: There is no image .*none:1/,
      ],
      [
        [`FROM ${from}`, 'COPY --from=10.0.0.1/none:1 /x /x'],
        /^Line 2: from=10\.0\.0\.1\/none:1: The registry 10\.0\.0\.1 is not on the public Internet/,
      ],
      [
        [`FROM ${from} AS a`, '', 'FROM 10.0.0.1/none:1', 'COPY --from=a /bin /bin'],
        /^Line 3: FROM 10\.0\.0\.1\/none:1: The registry 10\.0\.0\.1 is not on the public Internet/,
      ],
      [[`FROM ${from}`, 'RUN --mount=type=cache,target=/proc/x true'], /^Line 2: /],
      [
        [`FROM ${from}`, 'RUN --mount=type=secret,id=npm exit 5'],
        /^Line 2: exit code 5\nThe command ran without npm: builds get no secrets/,
      ],
      [
        [`FROM ${from}`, 'RUN --mount=type=cache,target=/kept rm -r /kept'],
        /^Line 2: the command has removed \/kept, where its cache was; remove only the files in it/,
      ],
    ] as const) {
      await assert.rejects(build([...lines]), { name: 'ImageFailed', message })
      await leavesNothing()
    }
  })
})
