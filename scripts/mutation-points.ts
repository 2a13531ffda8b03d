// Finds places in a source file where a small change should make a test fail. This module searches the text: we have no parser.
// First, spaces replace types, comments, strings and regular expressions. All other code keeps its position.
import { stripTypeScriptTypes } from 'node:module'

export type Mutation = { start: number; end: number; text: string; what: string }

const blank = (text: string) => text.replace(/[^\n]/g, ' ')

/**
 * Matches comments, strings and regular expressions, which are never mutated. It also matches the signs where a template,
 * `${…}` or a block begins or ends.
 */
const token =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|(?<=[(,=:[!&|?{};\n]\s*|return )\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*|`|\$\{|[{}]/g

/**
 * Returns the code with spaces in place of strings, and the positions of the literal parts of templates, outside of
 * `${…}`.
 */
const split = (source: string): { code: string; templates: [start: number, end: number][] } => {
  const code: string[] = []
  const templates: [number, number][] = []
  /** What encloses the present position, outermost first: a template, the `${…}` in a template, or a block. */
  const open: ('`' | '${' | '{')[] = []
  let from = 0
  const end = (at: number) => {
    const isText = open.at(-1) === '`'
    const piece = source.slice(from, at)
    code.push(isText ? blank(piece) : piece)
    if (isText) templates.push([from, at])
    from = at
  }
  for (const { 0: found, index } of source.matchAll(token)) {
    const isText = open.at(-1) === '`'
    if (isText && found !== '`' && found !== '${') continue
    end(index)
    if (found === '`') isText ? open.pop() : open.push('`')
    else if (found === '${' || found === '{') open.push(found)
    else if (found === '}') open.pop()
    code.push(found.length === 1 || found === '${' ? found : blank(found))
    from = index + found.length
  }
  end(source.length)
  return { code: code.join(''), templates }
}

const swaps: Record<string, string> = {
  ...{ '<': '<=', '<=': '<', '>': '>=', '>=': '>', '===': '!==', '!==': '===', '&&': '||', '||': '&&' },
  ...{ '+': '-', '-': '+', '*': '/', '/': '*', true: 'false', false: 'true' },
}

const rules: [RegExp, (found: string) => [text: string, what: string]][] = [
  [
    /(?<= )(?:[<>]=?|[!=]==|&&|\|\||[-+*/])(?=[ \n])|\b(?:true|false)\b/g,
    (found) => [swaps[found]!, `${found} → ${swaps[found]}`],
  ],
  [/(?<![\w.$'])\d[\d_]*(?![\w.:])/g, (found) => [`(${found} + 1)`, `${found} → ${found} + 1`]],
  [/(?<=[\s(&|!])!(?=[\w(#])/g, () => ['', 'drop the negation']],
  [/(?<!for )\bawait (?!using)/g, () => ['', 'drop the await']],
  [/\bthrow (?=\S)/g, () => ['void ', 'drop the throw']],
  [/\bif \((?=\S)/g, () => ['if (false && ', 'if false and …']],
  [/\bif \((?=\S)/g, () => ['if (true || ', 'if true or …']],
  [
    /^ +(?:await )?(?!if|for|while|switch|return|catch)[\w.#?]+\([^\n]*\)$(?!\n +[.?&|:])/gm,
    () => [';', 'drop the statement'],
  ],
  [/^ +[\w.#]+ [-+]?= [^\n]*[^\n{([,=>|&?:]$(?!\n +[.?&|:+])/gm, () => [';', 'drop the assignment']],
]

/** Matches one condition of an SQL query, up to the next clause or the end of the line. */
const clause = /\b(?:and|or) [^\n]*?(?=\s+(?:and|or|returning|order|group|limit|for)\b|\)*$)/gm
const isQuery = (text: string) => /\b(?:select|update|delete from|insert into)\b/.test(text)

export const isCode = (source: string): boolean => {
  try {
    return stripTypeScriptTypes(source) !== ''
  } catch {
    return false
  }
}

export const mutationsOf = (source: string): Mutation[] => {
  const { code, templates } = split(stripTypeScriptTypes(source))
  const inCode = rules.flatMap(([shape, change]) =>
    [...code.matchAll(shape)].map(({ 0: found, index }): Mutation => {
      const [text, what] = change(found)
      return { start: index, end: index + found.length, text, what }
    }),
  )
  /**
   * The parts of template strings that contain SQL. A mutation removes one condition of the SQL (pattern `clause`). The condition
   * may contain `${…}`.
   */
  const queries = templates.filter(([start, end]) => isQuery(source.slice(start, end)))
  const inQueries = queries.flatMap(([start]) => {
    const end = source.indexOf('`', start)
    return [...source.slice(start, end).matchAll(clause)].map(({ 0: found, index }): Mutation => {
      return { start: start + index, end: start + index + found.length, text: '', what: `drop \`${found}\`` }
    })
  })
  const isOfLog = ({ start }: Mutation) =>
    /^\s*(?:await )?[\w.#]*log\./.test(source.slice(source.lastIndexOf('\n', start) + 1))
  return [...inCode, ...inQueries].filter((mutation) => !isOfLog(mutation))
}

export const applied = (source: string, { start, end, text }: Mutation): string =>
  source.slice(0, start) + text + source.slice(end)

/**
 * Returns a function that generates pseudo-random numbers from 0 to 1. With the same seed, the numbers are always the same
 * (mulberry32).
 */
export const randomOf = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}
