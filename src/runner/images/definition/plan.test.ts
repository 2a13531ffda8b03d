import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { ImageFailed } from '../image-failed.ts'
import type { ContainerConfig } from '../manifest.ts'
import { emptyConfig, type Plan, planOf, type Stage } from './plan.ts'

const base: ContainerConfig = {
  entrypoint: ['/init'],
  cmd: ['serve'],
  env: { PATH: '/bin' },
  user: '',
  workdir: '/base',
}
/** Returns the last stage of a definition. */
const lastOf = (text: string, hasFiles = false) => planOf(text, hasFiles).stages.at(-1) as Stage
const configFrom = (...lines: string[]) => lastOf(['FROM x', ...lines].join('\n')).on(base).config
const refusal = (text: string) => {
  try {
    planOf(text)
  } catch (error) {
    assert.ok(error instanceof ImageFailed)
    return error.message
  }
  return assert.fail(`not refused: ${text}`)
}

/** Checks that an error names the line, the instruction if the line has an instruction, and what to write instead. */
const checkComplete = (said: string, text: string) => {
  const [, line, name, instead = ''] =
    /^Line (\d+) of the definition(?: \(([A-Z]+)\))?: [^;]+; (.+)\.$/s.exec(said) ?? []
  const written = text.split('\n')[Number(line) - 1] ?? ''
  assert.match(instead, /^(?:write|leave|join|put|move|combine|remove|fetch|send|COPY) /, said)
  if (name === undefined)
    assert.match(said, /there is no FROM|is no instruction|longer than 256 KiB|together are longer/)
  else assert.ok(written.startsWith(name), `${said} for ${written.slice(0, 100)}`)
}

suite('definitions of images', () => {
  test('an ONBUILD trigger keeps its here-documents exactly as they are written', () => {
    const { onbuild } = configFrom('ONBUILD RUN <<EOF', 'hello', 'EOF', 'ONBUILD COPY <<A <<B /', 'a', 'A', 'b', 'B')
    assert.deepEqual(onbuild, ['RUN <<EOF\nhello\nEOF\n', 'COPY <<A <<B /\na\nA\nb\nB\n'])
  })

  test('a definition of exactly 256 KiB is accepted', () => {
    assert.deepEqual(lastOf(`FROM x\n${'#'.repeat(256 * 1024 - 7)}`).from, { image: 'x' })
  })

  test('a definition with only FROM yields the unchanged base image', () => {
    const plan = lastOf('FROM alpine:3.20\n')
    assert.deepEqual([plan.from, plan.on(base)], [{ image: 'alpine:3.20' }, { steps: [], config: base }])
  })

  test('ENV accepts each of its forms, with variables of the base image, of ARG and of earlier lines', () => {
    const { env } = configFrom(
      'ARG version=3 name',
      'ENV A=1 B="two words" C=\'$A\' D=a\\ b',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the definition.
      'ENV PATH="$PATH:/opt/${version}/bin" E=${A}x F=${none:-def$A} G=${A:+yes} H=\\$A I=${none}',
      'ENV OLD the old  form $A',
      'env J=$ K=a$',
    )
    assert.deepEqual(env, {
      ...{ PATH: '/bin:/opt/3/bin', A: '1', B: 'two words', C: '$A', D: 'a b', E: '1x', F: 'def1', G: 'yes' },
      ...{ H: '$A', I: '', OLD: 'the old  form 1', J: '$', K: 'a$' },
    })
  })

  test('a stage whose base image has no PATH begins with Docker’s default PATH', () => {
    const standard = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    const { env } = lastOf('FROM x\nENV PATH=/opt/bin:$PATH').on({ ...base, env: {} }).config
    assert.deepEqual(env, { PATH: `/opt/bin:${standard}` })
    assert.deepEqual(lastOf('FROM scratch\nENV A=1').on({ ...base, env: {} }).config.env, { PATH: standard, A: '1' })
  })

  test('variables of a Dockerfile with patterns or default values have the value that a shell would yield', () => {
    const { env } = configFrom(
      'ARG TAG=v1.2.3-rc1',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: variables of the definition.
      'ENV A=${TAG#v} B=${TAG%%-*} C=${TAG//./-} D=${TAG/./_} E=${TAG#*.} F=${TAG##*.} G=${TAG%.*} H=${none:-${TAG#v}}',
    )
    assert.deepEqual(env, {
      ...{ PATH: '/bin', A: '1.2.3-rc1', B: 'v1.2.3', C: 'v1-2-3-rc1', D: 'v1_2.3-rc1', E: '2.3-rc1', F: '3-rc1' },
      ...{ G: 'v1.2', H: '1.2.3-rc1' },
    })
  })

  test('a relative WORKDIR is below the earlier WORKDIR; USER, CMD and ENTRYPOINT replace earlier values', () => {
    const config = configFrom('ENV D=sub', 'WORKDIR app', 'WORKDIR $D/../x', 'USER app:staff', 'CMD echo "$HOME"')
    assert.deepEqual(
      [config.workdir, config.user, config.cmd],
      ['/base/app/x', 'app:staff', ['/bin/sh', '-c', 'echo "$HOME"']],
    )
    assert.equal(configFrom('WORKDIR /new dir').workdir, '/new dir')
  })

  test('a new ENTRYPOINT clears the CMD of the base image, but not a CMD of the same definition', () => {
    assert.deepEqual(configFrom('ENTRYPOINT ["/a", "b"]').cmd, [])
    const { entrypoint, cmd } = configFrom('CMD ["c"]', 'ENTRYPOINT ["/a", "b"]')
    assert.deepEqual([entrypoint, cmd], [['/a', 'b'], ['c']])
    assert.deepEqual(configFrom('ENTRYPOINT [not json]').entrypoint, ['/bin/sh', '-c', '[not json]'])
  })

  test('each RUN has the user, directory and variables that are set at its line', () => {
    const { steps } = lastOf(
      'ARG base=debian\nFROM $base:12 AS build\nARG base\nENV A=1\nRUN one $A && \\\n# a comment\n\n  two\nUSER app\nWORKDIR /w\nENV A=2\nRUN ["three", "$A"]',
    ).on(base)
    assert.deepEqual(steps, [
      {
        line: 5,
        argv: ['/bin/sh', '-c', 'one $A &&   two'],
        env: { base: 'debian', PATH: '/bin', A: '1' },
        user: '',
        workdir: '/base',
      },
      { line: 10, directory: '/w' },
      { line: 12, argv: ['three', '$A'], env: { base: 'debian', PATH: '/bin', A: '2' }, user: 'app', workdir: '/w' },
    ])
  })

  test('lines with COPY and ADD are parsed into sources, destination, owner, mode and other flags', () => {
    const copies = (...lines: string[]) =>
      lastOf(['FROM x', ...lines].join('\n'), true)
        .on(base)
        .steps.flatMap((step) => ('copy' in step ? [step.copy] : []))
    const plain = { owner: '', group: '', unpacks: false, documents: [], urls: [], excludes: [], keepsParents: false }
    assert.deepEqual(
      copies(
        'COPY a b',
        'ENV D=dir',
        'WORKDIR /w',
        'COPY "my file" x* $D/',
        'COPY ["a b", "/to/"]',
        'ENV FILE="my file"',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the definition.
        'ADD ["$FILE", "${D}s/*", "\\\\$D", "/to/$D/"]',
        'COPY --chown=app:9 --chmod=0750 --link . .',
        'ADD --chown=1 a.tar ../up',
        `COPY ${'--link '.repeat(30)}a b`,
      ),
      [
        { ...plain, sources: ['a'], destination: '/base/b' },
        { ...plain, sources: ['my file', 'x*'], destination: '/w/dir/' },
        { ...plain, sources: ['a b'], destination: '/to/' },
        { ...plain, sources: ['my file', 'dirs/*', '$D'], destination: '/to/dir/', unpacks: true },
        { ...plain, sources: ['.'], destination: '/w/', owner: 'app', group: '9', mode: 0o750 },
        { ...plain, sources: ['a.tar'], destination: '/up', owner: '1', unpacks: true },
        { ...plain, sources: ['a'], destination: '/w/b' },
      ],
    )
    const repository = { url: 'https://x/y.git', ref: 'HEAD', directory: '', keepsHistory: false }
    const added = (line: string) => copies(line)[0]?.repository
    assert.deepEqual(added('ADD https://x/y.git /to'), repository)
    assert.deepEqual(added(`ADD --keep-git-dir --checksum=${'a'.repeat(40)} https://x/y.git#v1.0:/docs/./a/ /to`), {
      ...repository,
      ...{ ref: 'v1.0', directory: 'docs/a', keepsHistory: true },
    })
    for (const [line, message] of [
      ['COPY a', /COPY needs at least one file and a destination/],
      ['COPY a b c', /the destination of several files must be a directory/],
      ['COPY --from=BUILD_ a b', /"BUILD_" is not the name of an image.*, and no other stage has this name/],
      ['COPY --from=1 a b', /--from=1 names no other stage; write the name of a stage, or its number from 0 on/],
      ['COPY --from=0 a b', /--from=0 names no other stage/],
      ['COPY --from=$x a b', /--from must not contain a variable; write a stage FROM \$x AS name, and --from=name/],
      ['COPY --checksum=x a b', /--checksum is not supported; write ADD --checksum/],
      ['COPY --chmod=u+x a b', /octal number/],
      ['COPY --chown=a:b:c a b', /write --chown=USER or/],
      // Reading a flag looks up all variables, so the number of flags is limited.
      [`COPY ${'--link '.repeat(30_000)}a b`, /it has more than 30 flags/],
      ['COPY https://x/y.tar /', /COPY cannot copy from a URL.*write ADD/],
      ['ADD ftp://x/y /', /only http:.* are allowed/],
      ['ADD git@host:x.git /', /a repository needs an http:.* URL \(git@host:x.git\); write https:/],
      ['ADD ssh://git:pw@host/x.git /', /a repository needs an http:.* URL \(ssh:\/\/host\/x.git\)/],
      ['ADD git://host/x.git /', /a repository needs an http/],
      ['ADD https://me:pw@host/x.git /', /a URL with a password.*\(https:\/\/host\/x.git\)/],
      ['ADD https://x/y.git#--upload-pack=x /', /the URL of the repository is not valid; write https:/],
      ['ADD https://x/y.git#a..b /', /the URL of the repository is not valid/],
      ['ADD https://x/y.git#a:../b /', /the URL of the repository is not valid/],
      ['ADD https://x/y.git#a:b:c /', /the URL of the repository is not valid/],
      ['ADD https://x/y.git#100% /', /the URL of the repository is not valid; write https:/],
      ['ADD https://x/y.git#v1:%E0%A4 /', /the URL of the repository is not valid/],
      ['ADD https://x/y.git?ref=a /', /the URL of the repository is not valid/],
      ['ADD https://x/y.git https://x/z.git /to/', /a repository must be the only source of its line/],
      [
        'ADD --checksum=abc https://x/y.git /',
        /--checksum of a repository must be the hash of a commit; write all of its 40 digits/,
      ],
      ['COPY https://x/y.git /', /COPY cannot copy from a URL.*write ADD/],
      ['ADD https://me:secret@x/y /', /a URL with a password.*\(https:\/\/x\/y\); COPY the file/],
      [`ADD ${'http://x/y '.repeat(101)}/to/`, /it has more than 100 URLs; write several lines/],
      ['ADD https://x/ /to/', /the URL contains no file name/],
      ['ADD --checksum=md5:1 https://x/y /', /write --checksum=sha256:/],
      [`ADD --checksum=sha256:${'a'.repeat(64)} y /`, /--checksum needs a single source/],
      ['COPY <<EOF /x\nabc', /Line 2 .*the here-document EOF has no end; write a line below that contains only "EOF"/],
    ] as const)
      assert.throws(
        () => copies(line),
        (error: Error) => {
          checkComplete(error.message, `FROM x\n${line}`)
          assert.match(error.message, message)
          return true
        },
      )
  })

  test('a plan refuses a base image with more than 100 triggers, and more than 20 fetched base images', () => {
    const plan = planOf('FROM a\nRUN true')
    const base = (count: number) => ({ ...emptyConfig(), onbuild: Array.from({ length: count }, () => 'RUN true') })
    assert.equal(plan.with(new Map([[0, base(100)]])).stages.length, 1)
    assert.throws(() => plan.with(new Map([[0, base(101)]])), { message: /a has more than 100 ONBUILD triggers/ })
    const others = (count: number) =>
      new Map(Array.from({ length: count }, (_, at) => [at + 1, emptyConfig()] as const))
    assert.equal(plan.with(others(19)).stages.length, 1)
    assert.throws(() => plan.with(others(20)), { message: /more than 20 stages and images/ })
  })

  test('triggers and variables of a base image may add stages to a plan, but no circle of stages', () => {
    const indexes = ({ stages }: Plan) => stages.map(({ index }) => index)
    const plan = planOf('FROM x AS a\nFROM y\nRUN --mount=target=/m$MORE true', true)
    assert.deepEqual(indexes(plan), [1])
    const trigger = { ...base, onbuild: ['COPY --from=A /x /x'] }
    assert.deepEqual(indexes(plan.with(new Map([[1, trigger]]))), [0, 1])
    const variable = { ...base, env: { MORE: ',from=0' } }
    assert.deepEqual(indexes(plan.with(new Map([[1, variable]]))), [0, 1])
    const back = { ...base, onbuild: ['RUN --mount=from=1,target=/m true'] }
    const bases = new Map([
      [0, back],
      [1, trigger],
    ])
    assert.throws(() => plan.with(bases), {
      name: 'ImageFailed',
      message: /^Line 1 of the definition \(ONBUILD RUN --mount=from=1,target=\/m true of x\): stages need each other/,
    })
  })

  test('a definition is accepted with directives, Windows line ends, and instructions that change no files', () => {
    const plan = lastOf(
      '# escape=`\r\nFROM x\r\nENV A=1 `\r\n  B=2\r\nLABEL a=b\r\nEXPOSE 80\r\nVOLUME /d\r\nHEALTHCHECK NONE\r\n',
    )
    assert.deepEqual(plan.on(base).config.env, { PATH: '/bin', A: '1', B: '2' })
  })

  test('a Dockerfile with an unsupported instruction or flag is refused; the error has the line and name', () => {
    const refused = {
      '': /^Line 1 .*there is no FROM/,
      'RUN x\nFROM y': /^Line 1 .*only ARG may come before FROM/,
      'FROM --platform=linux/s390x x':
        /Line 1.*\(FROM\): --platform=linux\/s390x cannot run here.*leave --platform out/,
      'FROM --pull=never x': /\(FROM\): --pull=never is not supported; leave it out/,
      'FROM x y': /takes one image; write FROM IMAGE/,
      'FROM $x': /names no image; write FROM IMAGE, and ARG NAME=value above it/,
      'FROM UPPER': /"UPPER" is not the name of an image/,
      'FROM x\nCOPY a b': /^Line 2 of the definition \(COPY\): this line needs files, but no files were sent/,
      'FROM x\n\nSHELL bash -c': /^Line 3 .*\(SHELL\): SHELL needs a JSON list/,
      'FROM x\nONBUILD FROM y': /\(ONBUILD\): ONBUILD FROM is not allowed/,
      'FROM x\nONBUILD ONBUILD RUN y': /\(ONBUILD\): ONBUILD ONBUILD is not allowed/,
      'FROM x\nONBUILD FROBNICATE': /FROBNICATE is no instruction/,
      'FROM x\nFROBNICATE': /FROBNICATE is no instruction/,
      'FROM x\n!': /"!" is no instruction/,
      'FROM x AS a\nCOPY --from=b /x /\nFROM a AS b': /Line \d of .*stages need each other in a circle/,
      [['FROM x AS s0', ...Array.from({ length: 900 }, (_, at) => `FROM s${at} AS s${at + 1}`)].join('\n')]:
        /^Line \d+ .*the last stage needs more than 20 stages and images; combine some/,
      'FROM x\nRUN --mount=type=cache y': /--mount=type=cache has no target; write --mount=type=cache,target=PATH/,
      'FROM x\nRUN --mount=type=disk,target=/x y': /--mount has no type "disk"/,
      'FROM x\nRUN --mount=type=tmpfs,target=/x,colour=red y': /--mount=type=tmpfs has no option "colour"/,
      'FROM x\nRUN --mount=type=cache,target=/ y': /nothing can be mounted at \//,
      'FROM x\nRUN --mount=type=cache,target=/x,mode=0758 y':
        /mode of --mount must be an octal number.*; write for example mode=0755/,
      'FROM x\nRUN --mount=type=cache,target=/x,uid=1a y':
        /uid of --mount must be a number.*; write for example uid=1000/,
      'FROM x\nRUN --mount=type=secret,id=a,required=true y': /builds get no secrets and no SSH keys; fetch/,
      'FROM x\nRUN --network=host y': /\(RUN\): --network=host is not allowed; write --network=default/,
      'FROM x\nRUN --security=insecure y': /\(RUN\): --security is not supported; leave it out/,
      'FROM x\nRUN --mount=from=$a,target=/x y': /--from must not contain a variable; write a stage FROM \$a AS name/,
      'FROM x\nRUN --mount="type=cache y': /a flag has a quote that is never closed/,
      'FROM x AS a\nCOPY --from=1 /x /\nFROM x AS b\nRUN --mount=from=2,target=/x y\nFROM x AS c\nCOPY --from=0 /x /':
        /stages need each other in a circle/,
      [`FROM x\n${'RUN true\n'.repeat(10_000)}`]: /^Line 1001 .*more than 1000 instructions/,
      [`FROM x\nRUN <<EOF\n${'ls\n'.repeat(10_000)}`]: /the here-document EOF has no end/,
      [`FROM x\n${'RUN <<EOF\n'.repeat(10_000)}`]: /the here-document EOF has no end/,
      'FROM x\nRUN <<EOF\nls': /the here-document EOF has no end/,
      'FROM scratch\nENV A=${B:?it is needed}': /Line 2.*B: it is needed/,
      'FROM x\nENV A=${B': /Line 2.*a "\$\{" is never closed/,
      [`FROM x\nENV A=${'${a:-'.repeat(40_000)}`]: /nested too deeply/,
      [`FROM x AS s0\n${Array.from({ length: 30 }, (_, n) => `FROM s${n} AS s${n + 1}\nRUN y`).join('\n')}`]:
        /more than 20 stages and images/,
      [`FROM x\nARG a=${'a'.repeat(50_000)}\nARG b=${'*a'.repeat(10_000)}\nENV c=\${a##$b}`]:
        /variables make the definition too long/,
      'FROM x\nRUN': /\(RUN\): RUN needs a command/,
      'FROM x\nENV': /write ENV NAME=value/,
      'FROM x\nENV =1': /write ENV NAME=value/,
      'FROM x\nENV A="1': /a quote is never closed/,
      'FROM x\nUSER a b': /write USER VALUE/,
      'FROM scratch\nWORKDIR ""': /write WORKDIR VALUE/,
      [`FROM x\n${'#'.repeat(256 * 1024 - 6)}`]: /longer than 256 KiB/,
      [`FROM x\n${'USER a\n'.repeat(1001)}`]: /more than 1000 instructions/,
      // Each of these definitions is short. Without limits, reading such a definition would block the runner or use all of its
      // memory.
      [`FROM x\nARG a=${'x'.repeat(1000)}\nARG b=${'$a'.repeat(1000)}\nENV c=$b`]:
        /Line 4.* variables make the definition too long/,
      [`ARG a=${'x'.repeat(1000)}\nARG b=${'$a'.repeat(1000)}\nFROM $b$b`]: /variables make the definition too long/,
      [`FROM x\nWORKDIR ${'x'.repeat(4096)}`]: /\(WORKDIR\): it is too long/,
      [`FROM x\nUSER ${'x'.repeat(1025)}`]: /\(USER\): it is too long/,
      [`FROM x\nENV A=${'x'.repeat(5000)}\n${'RUN a\n'.repeat(900)}`]: /Line 83\d.* too many RUN lines for variables/,
      [`FROM x\nENV A=${'x'.repeat(128 * 1024)}`]: /variable is longer than 128 KiB/,
      [`FROM x\nENV A=${'x'.repeat(100_000)}\nENV B=$A C=$A`]: /together are longer than 256 KiB/,
      [`FROM x\nENV ${Array.from({ length: 1001 }, (_, n) => `v${n}=`).join(' ')}\nRUN a`]: /more than 1000 variables/,
    }
    for (const [text, message] of Object.entries(refused)) {
      const said = refusal(text)
      assert.match(said, message)
      checkComplete(said, text)
    }
  })
})
