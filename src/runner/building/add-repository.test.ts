// Tests ADD of git repositories, from a git server on loopback. Needs root; without root the suite is skipped.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { needsRoot } from '#test/needs-root.ts'
import { makeImage, tarOf } from '../images/testing/oci-image.ts'
import { TestRegistry } from '../images/testing/registry.ts'
import { openBuilding } from '../testing/building.ts'
import { busyboxFiles, needsBusybox } from '../testing/busybox-files.ts'
import { TestHost } from '../testing/test-host.ts'
import type { AllImages } from './all-images.ts'

const skip = needsRoot || needsBusybox

suite('ADD of a git repository', { skip }, () => {
  let box: TestHost
  let registry: TestRegistry
  let images: AllImages
  let from: string
  let at: string
  let count = 0
  /** Number of git objects that the server announces. Undefined: the server announces the true number. */
  let saidObjects: number | undefined
  const commits: Record<string, string> = {}
  const work = mkdtempSync(join(tmpdir(), 'alcove-repository-'))
  const bare = join(work, 'tool.git')

  const git = (...argv: string[]) =>
    execFileSync('git', ['-C', work, '-c', 'user.name=a', '-c', 'user.email=a@b', ...argv], { encoding: 'utf8' }).trim()
  const commit = (name: string) => {
    git('add', '.')
    git('commit', '--quiet', '-m', name)
    commits[name] = git('rev-parse', 'HEAD')
  }
  const makeRepository = () => {
    git('init', '--quiet', '--initial-branch=main', '.')
    mkdirSync(join(work, 'docs'))
    writeFileSync(join(work, 'run.sh'), 'one\n', { mode: 0o755 })
    writeFileSync(join(work, 'docs/page'), 'a page\n')
    writeFileSync(join(work, '.gitattributes'), 'docs export-ignore\n* filter=evil\n')
    symlinkSync('/etc', join(work, 'out'))
    commit('first')
    git('tag', 'v1')
    writeFileSync(join(work, 'run.sh'), 'two\n')
    commit('second')
    git('checkout', '--quiet', '-b', 'nested')
    writeFileSync(join(work, '.gitmodules'), '[submodule "x"]\n\tpath = x\n\turl = https://127.0.0.1:1/x.git\n')
    commit('nested')
    // Seven levels of directories, each with ten entries for the level below: eight git objects describe ten million files.
    let object = git('hash-object', '-w', 'run.sh')
    for (let level = 0; level < 7; level++) {
      const kind = level === 0 ? '100644 blob' : '040000 tree'
      const input = Array.from({ length: 10 }, (_, at) => `${kind} ${object}\t${at}\n`).join('')
      object = execFileSync('git', ['-C', work, 'mktree'], { input, encoding: 'utf8' }).trim()
    }
    git('branch', 'bomb', git('commit-tree', object, '-m', 'bomb'))
    // Ten levels of directories, each with ten entries for the level below: ten billion directories without a file.
    object = git('hash-object', '-w', '-t', 'tree', '/dev/null')
    for (let level = 0; level < 10; level++) {
      const input = Array.from({ length: 10 }, (_, at) => `040000 tree ${object}\t${at}\n`).join('')
      object = execFileSync('git', ['-C', work, 'mktree'], { input, encoding: 'utf8' }).trim()
    }
    git('branch', 'hollow', git('commit-tree', object, '-m', 'hollow'))
    git('checkout', '--quiet', 'main')
    git('clone', '--quiet', '--bare', '.', bare)
    git('--git-dir', bare, 'config', 'uploadpack.allowAnySHA1InWant', 'true')
  }

  /** Answers a git client over HTTP, as git-upload-pack does (gitprotocol-http(5)). */
  const serveGit = async (path: string, request: IncomingMessage) => {
    if (path === '/tool.git/info/refs?service=git-upload-pack') {
      const refs = execFileSync('git', ['upload-pack', '--stateless-rpc', '--advertise-refs', bare])
      const body = Buffer.concat([Buffer.from('001e# service=git-upload-pack\n0000'), refs])
      return { status: 200, type: 'application/x-git-upload-pack-advertisement', body }
    }
    const asked = await buffer(request)
    const input = request.headers['content-encoding'] === 'gzip' ? gunzipSync(asked) : asked
    const body = execFileSync('git', ['upload-pack', '--stateless-rpc', bare], { input })
    const pack = body.indexOf('PACK')
    if (saidObjects !== undefined && pack > 0) body.writeUInt32BE(saidObjects, pack + 8)
    return { status: 200, type: 'application/x-git-upload-pack-result', body }
  }

  before(async () => {
    makeRepository()
    box = await TestHost.start()
    registry = await TestRegistry.start()
    registry.onRequest = (path, answer, request) => (path.startsWith('/tool.git/') ? serveGit(path, request) : answer)
    from = registry.put('busybox:1', makeImage({ layers: [tarOf(busyboxFiles())], config: { Env: ['PATH=/bin'] } }))
    at = `http://${registry.host}/tool.git`
    await box.close()
    const opened = await openBuilding(box.instance, box.directory, registry.host)
    box.use(opened)
    images = opened.images
  })
  after(async () => {
    rmSync(work, { recursive: true })
    await registry?.[Symbol.asyncDispose]()
    await box?.[Symbol.asyncDispose]()
  })

  const build = async (...lines: string[]) => {
    count += 1
    const image = `built-${count}`
    let log = ''
    await images.bring(
      {
        ...{ image, target: 'present', maxGiB: 1, organizationId: 'one' },
        source: { kind: 'definition', dockerfile: [`FROM ${from}`, ...lines].join('\n') },
      },
      {
        signal: new AbortController().signal,
        onProgress: () => {},
        onText: (text) => {
          log += text
        },
      },
    )
    return { image, log }
  }

  test('ADD copies a branch, tag, commit or directory of a git repository, without its hooks or filters', async () => {
    const { image } = await build(
      `ADD ${at}#main /main`,
      `ADD --checksum=${commits['first']} ${at}#v1 /tagged`,
      `ADD --chown=app ${at}#${commits['first']}:docs /pages/`,
      `ADD --keep-git-dir=true ${at} /whole`,
    )
    const { sandboxId } = await box.started({ image, isNew: true, user: 'root' })
    const { output } = await box.run(
      sandboxId,
      'cat /main/run.sh /tagged/run.sh /pages/page; stat -c "%a %u" /main/run.sh /pages/page; ls -A /main; cat /whole/.git/HEAD; /bin/busybox readlink /main/out',
    )
    assert.deepEqual(output.split('\n'), [
      ...['two', 'one', 'a page', '755 0', '644 1000', '.gitattributes', 'docs', 'out', 'run.sh'],
      ...[commits['second'], '/etc'],
    ])
    await box.host.destroy(sandboxId)
  })

  test('if the branch of a cached ADD has moved, the ADD and all lines after it run again', async () => {
    const lines = [`ADD ${at}#main /main`, 'RUN cat /main/run.sh > /copied']
    await build(...lines)
    assert.match((await build(...lines)).log, /Line 2: cached: ADD .*\nLine 3: cached: RUN/)
    git('--git-dir', bare, 'update-ref', 'refs/heads/main', commits['first'] as string)
    assert.doesNotMatch((await build(...lines)).log, /cached/)
    git('--git-dir', bare, 'update-ref', 'refs/heads/main', commits['second'] as string)
  })

  test('the error of an ADD from git says whether repository, commit or directory is missing or not allowed', async () => {
    for (const [line, message] of [
      [`ADD ${at}#none /x`, /^Line 2: There is no none in the repository, .*write a branch, a tag or a whole commit/],
      [`ADD ${at}#main:none /x`, /^Line 2: There is no directory none in the repository/],
      [`ADD ${at}#main:out /x`, /^Line 2: There is no directory out in the repository/],
      [
        `ADD ${at}#nested /x`,
        /^Line 2: The repository has submodules; clone it with RUN git clone --recurse-submodules/,
      ],
      [`ADD ${at}#bomb /x`, /^Line 2: The repository has 200000 files and directories or more/],
      [`ADD ${at}#hollow /x`, /^Line 2: The repository has 200000 files and directories or more/],
      [
        `ADD --checksum=${commits['second']} ${at}#v1 /x`,
        /^Line 2: The repository does not match --checksum: its commit is [0-9a-f]{40}/,
      ],
      [`ADD http://${registry.host}/other.git /x`, /^Line 2: .* answered with 404/],
      ['ADD https://10.0.0.1/x.git /x', /^Line 2: 10\.0\.0\.1 is not on the public Internet/],
      ['ADD http://127.0.0.1:1/x.git /x', /^Line 2: 127\.0\.0\.1:1 is not on the public Internet/],
    ] as const)
      await assert.rejects(build(line), { name: 'ImageFailed', message })
    assert.deepEqual(box.host.list(), [])
  })

  test('ADD refuses a git repository as soon as the pack file’s header announces too many objects', async () => {
    saidObjects = 400_000
    const message = /^Line 2: The repository has 400000 git objects or more/
    await assert.rejects(build(`ADD ${at}#main /x`), { name: 'ImageFailed', message })
    saidObjects = undefined
  })
})
