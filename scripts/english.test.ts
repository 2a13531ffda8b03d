// Checks the countable rules of STYLE.md's plain English: how comments begin, and how long titles, settings and commit
// subjects are.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { meanings } from './reference/setting-meanings.ts'
import { telemetryMeanings } from './reference/telemetry-meanings.ts'

const sources = globSync(['{bin,src,client/src,scripts,bench,test}/**/*.ts', '{agent,native}/**/*.{c,h}'], {
  exclude: ['**/build/**'],
})

/** Returns file and line of each comment that begins with a word such as "Its", which does not name its subject. */
const hiddenSubjects = (file: string): string[] => {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line, index) => {
    const [, mark, words] = /^\s*(\/\*\*?|\/\/|\*(?!\/)) ?(.*)/.exec(line) ?? []
    const before = lines[index - 1] ?? ''
    const isFirst =
      mark?.startsWith('/*') || !/^\s*(?:\/\*|\/\/|\*)/.test(before) || /^\s*(?:\/\*\*|\/\/|\*)\s*$/.test(before)
    const isHidden = isFirst && /^(?:Of|The same|Also|As|Those|One|Its|So)\b/.test(words ?? '')
    return isHidden ? [`${file}:${index + 1} ${words}`] : []
  })
}

const wordsIn = (text: string) => text.split(/\s+/).filter((word) => /\w/.test(word)).length

suite('plain English in comments, test titles and docs', () => {
  test('no comment begins with Of, The same, Also, As, Those, One, Its or So, which hide the subject', () => {
    assert.ok(sources.length > 1000)
    assert.deepEqual(sources.flatMap(hiddenSubjects), [])
  })

  test('no test title is longer than 100 characters; the endpoints in it are not counted', () => {
    const long = sources
      .filter((file) => file.endsWith('.test.ts'))
      .flatMap((file) =>
        [...readFileSync(file, 'utf8').matchAll(/\b(?:test|suite)\(\s*'((?:[^'\\\n]|\\.)*)'/g)]
          .map(([, title]) => title ?? '')
          .filter((title) => title.replaceAll(/[A-Z]+ \/\S*,?/g, '').length > 100)
          .map((title) => `${file} ${title}`),
      )
    assert.deepEqual(long, [])
  })

  test('no sentence about a setting has more than 25 words', () => {
    const sentences = Object.entries({ ...meanings, ...telemetryMeanings }).flatMap(([name, meaning]) =>
      meaning.split(/(?<=[.:]) (?=[A-Z0-9`])/).map((sentence) => [name, sentence] as const),
    )
    assert.ok(sentences.length > 100)
    assert.deepEqual(
      sentences.filter(([, sentence]) => wordsIn(sentence) > 25),
      [],
    )
  })

  test('no item of docs/reference/choices.md has more than 60 words', () => {
    const items = readFileSync('docs/reference/choices.md', 'utf8')
      .split('\n')
      .filter((line) => /^ *- /.test(line))
    assert.ok(items.length > 200)
    assert.deepEqual(
      items.filter((item) => wordsIn(item) > 60),
      [],
    )
  })

  test('no commit subject since 2026-11-26 is longer than 72 characters', () => {
    const log = execFileSync('git', ['log', '--format=%cI %s', '--since=2026-11-26T00:00:00Z'], { encoding: 'utf8' })
    const subjects = log.split('\n').map((line) => line.slice(line.indexOf(' ') + 1))
    assert.deepEqual(
      subjects.filter((subject) => subject.length > 72),
      [],
    )
  })
})
