// Prints a random sample of comments, test titles and meanings of settings. Half of the items are comments.
// Somebody who does not know the code says which items were not clear at the first reading.
// Each comment stands with the code around it, and each title with its suite or its first tests, as in the file.
// Example: node scripts/sample-english.ts --count 40 --seed 1
// `--all PATH` prints every comment and title of the files whose path begins with PATH.
import { globSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { randomOf } from './mutation-points.ts'
import { meanings } from './reference/setting-meanings.ts'
import { telemetryMeanings } from './reference/telemetry-meanings.ts'

type Item = { place: string; text: string; code: readonly string[] }

const sources = globSync(
  ['{bin,src,client/src,dashboard/src,scripts,bench,test}/**/*.{ts,tsx}', '{agent,native}/**/*.{c,h}'],
  {
    exclude: ['**/build/**', '**/*.d.ts'],
  },
).sort()

const isLineComment = /^\s*\/\/ ?/

const indentOf = (line: string) => line.length - line.trimStart().length

/** Returns the line that opens the block around a comment, and `lineCount` lines from the comment on. */
const codeAround = (lines: readonly string[], from: number, lineCount: number): string[] => {
  const indent = indentOf(lines[from] ?? '')
  const around = lines
    .slice(0, from)
    .findLast((line) => line.trim() !== '' && indentOf(line) < indent && !/^\s*(?:\*|\/[/*])/.test(line))
  const next = lines.slice(from, from + lineCount)
  const end = next.findIndex((line, index) => line.trim() === '' || (index > 0 && /^\s*(?:\*|\/[/*])/.test(line)))
  const below = end < 0 ? next : next.slice(0, end)
  return [...(around === undefined ? [] : [around, '  …']), ...below]
}

/** Returns the comments of a file. Consecutive lines of `//` are one comment. */
const commentsIn = (file: string): Item[] => {
  const lines = readFileSync(file, 'utf8').split('\n')
  const items: Item[] = []
  for (let index = 0; index < lines.length; index++) {
    const first = index
    const line = lines[index] ?? ''
    const trailing = /^\s*[^\s/*'`].*[\s;,{]\/\/ (.*)$/.exec(line)?.[1]
    const texts: string[] = []
    if (isLineComment.test(line)) {
      for (; isLineComment.test(lines[index] ?? ''); index++)
        texts.push((lines[index] ?? '').replace(isLineComment, ''))
    } else if (/^\s*\/\*/.test(line)) {
      do texts.push((lines[index] ?? '').replace(/^\s*(?:\/\*+|\*(?!\/)) ?/, '').replace(/\s*\*\/\s*$/, ''))
      while (!(lines[index++] ?? '*/').includes('*/'))
    } else if (trailing !== undefined) texts.push(trailing)
    else continue
    const text = texts.join(first === 0 ? '\n' : ' ').trim()
    const code = trailing === undefined ? codeAround(lines, index, 3) : codeAround(lines, first, 1)
    if (trailing === undefined) index--
    if (/\w/.test(text) && !/^(?:biome-ignore|@ts-|eslint)/.test(text))
      items.push({ place: `${file}:${first + 1}`, text, code: first === 0 ? [] : code })
  }
  return items
}

const titleLine = /^( *)(test|suite)\(\s*(['"`])((?:(?!\3)[^\\\n]|\\.)*)\3/gm

/**
 * Returns the titles of the tests and suites in a file. Each title comes with the titles of the suites around it. A suite also
 * comes with the first three titles in it.
 */
const titlesIn = (file: string): Item[] => {
  const titles = [...readFileSync(file, 'utf8').matchAll(titleLine)].map(([, indent = '', kind = '', , text = '']) => ({
    depth: indent.length,
    kind,
    text,
  }))
  const around: typeof titles = []
  return titles.map((title, index) => {
    while ((around.at(-1)?.depth ?? -1) >= title.depth) around.pop()
    const outer = around.map(({ text }) => text)
    if (title.kind === 'suite') around.push(title)
    const after = titles.slice(index + 1)
    const end = after.findIndex(({ depth }) => depth <= title.depth)
    const inner = (end < 0 ? after : after.slice(0, end)).slice(0, 3).map(({ text }) => `  ${text}`)
    return {
      place: `${file} ${title.kind}`,
      text: title.text,
      code: [...outer, ...(inner.length > 0 ? ['…', ...inner] : [])],
    }
  })
}

const settings = (): Item[] =>
  Object.entries({ ...meanings, ...telemetryMeanings }).map(([name, text]) => ({ place: name, text, code: [] }))

const print = ({ place, text, code }: Item) =>
  console.log(`${place}\n  ${text.replaceAll('\n', '\n  ')}${code.map((line) => `\n      | ${line}`).join('')}\n`)

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '40' },
    seed: { type: 'string', default: '1' },
    all: { type: 'string' },
  },
})
const { all } = values
if (all === undefined) {
  const random = randomOf(Number(values.seed))
  const count = Number(values.count)
  const draw = (items: Item[], share: number) => {
    for (let left = Math.round(count * share); left > 0 && items.length > 0; left--)
      for (const item of items.splice(Math.floor(random() * items.length), 1)) print(item)
  }
  draw(sources.flatMap(commentsIn), 1 / 2)
  draw(sources.filter((file) => /\.test\.tsx?$/.test(file)).flatMap(titlesIn), 1 / 4)
  draw(settings(), 1 / 4)
} else {
  for (const file of sources.filter((path) => path.startsWith(all)))
    for (const item of [...commentsIn(file), ...(/\.test\.tsx?$/.test(file) ? titlesIn(file) : [])]) print(item)
}
