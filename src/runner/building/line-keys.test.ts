// Tests that the cache key of a line depends on everything that its result depends on, and on nothing else.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { emptyConfig, planOf } from '../images/definition/plan.ts'
import { keyAfter, keyOfBase } from './line-keys.ts'

/**
 * Returns the cache key after a definition's last line. `files` identifies the base image. `inputs` identifies what each line
 * copies.
 */
const keyOf = (lines: string[], { files = 'files', inputs = ['x'] } = {}) => {
  const { stages } = planOf(['FROM base', ...lines].join('\n'), true)
  const { steps } = stages[0].on(emptyConfig())
  return steps.reduce((key, step) => keyAfter(key, step, inputs), keyOfBase(files))
}

const same = (...all: string[][]) =>
  assert.equal(new Set(all.map((lines) => keyOf(lines))).size, 1, JSON.stringify(all))
const others = (...all: string[][]) =>
  assert.equal(new Set(all.map((lines) => keyOf(lines))).size, all.length, JSON.stringify(all))

suite('the cache key of a Dockerfile line', () => {
  const run = 'RUN make'

  test('the cache key of a line depends on its command, user, directory, shell and variables', () => {
    others(
      ...[[run], ['RUN make all'], ['RUN ["make"]'], ['USER app', run], ['WORKDIR /a', run], ['WORKDIR /b', run]],
      ...[
        ['ENV A=1', run],
        ['ENV A=2', run],
        ['ENV B=1', run],
        ['ARG A=3', run],
      ],
      ...[['SHELL ["/bin/bash", "-c"]', run], ['RUN --network=none make'], ['RUN <<E\nmake\nE'], ['RUN <<E\n#!/x\nE']],
    )
    same(['ARG A=1', 'ENV B=$A', run], ['ARG A=1', 'ENV B=1', run])
  })

  test('a line’s cache key does not depend on line numbers, comments, or instructions that change no files', () => {
    same([run], ['', '# said', run], ['LABEL a=b', 'EXPOSE 80', run], ['CMD ["x"]', 'ENTRYPOINT ["y"]', run])
    same([run], ['HEALTHCHECK NONE', 'VOLUME /v', 'STOPSIGNAL SIGINT', run])
  })

  test('the cache key of a COPY depends on the paths, owners and modes in the line, and on the copied files', () => {
    others(
      ...[['COPY a /to'], ['COPY b /to'], ['COPY a /other'], ['COPY a /to/'], ['ADD a /to']],
      ...[['COPY --chown=app a /to'], ['COPY --chown=1:2 a /to'], ['COPY --chmod=700 a /to']],
      ...[['COPY --exclude=*.md a /to'], ['COPY --parents a /to'], ['COPY <<a /to\none\na'], ['COPY <<a /to\ntwo\na']],
    )
    assert.notEqual(keyOf(['COPY a /to'], { inputs: ['one'] }), keyOf(['COPY a /to'], { inputs: ['two'] }))
    assert.notEqual(keyOf([run], { files: 'one' }), keyOf([run], { files: 'two' }))
  })

  test('the cache key of an ADD depends on its URL and its checksum', () => {
    const sums = ['0', '1'].map((digit) => `sha256:${digit.repeat(64)}`)
    others(
      ['ADD http://a.test/x /x'],
      ['ADD http://b.test/x /x'],
      ...sums.map((sum) => [`ADD --checksum=${sum} http://a.test/x /x`]),
    )
  })

  test('the cache key of a RUN depends on its mounts and on the id, not the value, of a secret', () => {
    others(
      ...[[run], ['RUN --mount=type=cache,target=/c make'], ['RUN --mount=type=cache,target=/d make']],
      ...[['RUN --mount=type=cache,id=x,target=/c make'], ['RUN --mount=target=/c make']],
      ...[['RUN --mount=type=secret,id=a make'], ['RUN --mount=type=secret,id=b make']],
      ...[['RUN --mount=type=tmpfs,target=/c make'], ['RUN --mount=type=bind,source=b,target=/c make']],
    )
  })

  test('the cache key of a line depends on all lines before it in its stage', () => {
    others(['RUN a', 'RUN b'], ['RUN b', 'RUN a'], ['RUN c', 'RUN b'], ['RUN b'])
  })

  test('the cache key of a line changes if characters move from the end of one argument to the next argument', () => {
    others(['ENV A=1 B=2', run], ['ENV A=1\\ B=2', run], ['ENV A="1,B:2"', run])
    assert.notEqual(
      keyAfter('a', { line: 1, directory: 'b' }, ['c', 'd']),
      keyAfter('a', { line: 1, directory: 'b' }, ['c,d']),
    )
  })
})
