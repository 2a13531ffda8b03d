// Patterns of `.dockerignore` and `--exclude`. `**` matches any number of directories, and `!` includes what earlier patterns
// exclude. A pattern for a directory also counts for everything below it.
import { ImageFailed } from '../images/image-failed.ts'
import { isMatch, type Token, tokensOf } from './tree.ts'

type Part = Token[] | 'any directories'
type Pattern = { parts: readonly Part[]; isException: boolean }

const mostPatterns = 1000
/** Maximum number of names between slashes in a pattern. */
const mostParts = 100

const patternOf = (line: string): Pattern => {
  const isException = line.startsWith('!')
  const names = line
    .slice(isException ? 1 : 0)
    .split('/')
    .filter((name) => name !== '' && name !== '.')
  if (names.length > mostParts)
    throw new ImageFailed(
      'unsupported',
      `The pattern "${line.slice(0, 100)}" has more than ${mostParts} names between slashes.`,
    )
  return { parts: names.map((name) => (name === '**' ? 'any directories' : tokensOf(name))), isException }
}

/** Returns whether the pattern matches a path or one of the directories above it. `names`: the names in the path. */
const matches = (parts: readonly Part[], names: readonly string[]): boolean => {
  let places = new Set([0])
  for (const name of names) {
    const next = new Set<number>()
    for (const place of places) {
      const part = parts[place]
      if (part === 'any directories') {
        next.add(place)
        // `**` may match zero directories, too.
        places.add(place + 1)
      } else if (part !== undefined && isMatch(name, part)) next.add(place + 1)
    }
    places = next
    const isWhole = [...places].some((place) => parts.slice(place).every((part) => part === 'any directories'))
    if (places.size > 0 && isWhole) return true
    if (places.size === 0) return false
  }
  return false
}

export class Patterns {
  readonly #patterns: readonly Pattern[]
  /** Whether any of the patterns begins with `!`. Such a pattern may include a file in an excluded directory. */
  readonly hasExceptions: boolean

  /** `lines`: the patterns in their order. The last pattern that matches a path decides whether the path is excluded. */
  constructor(lines: readonly string[]) {
    if (lines.length > mostPatterns)
      throw new ImageFailed('unsupported', `There are more than ${mostPatterns} patterns of files to leave out.`)
    this.#patterns = lines.map(patternOf).filter(({ parts }) => parts.length > 0)
    this.hasExceptions = this.#patterns.some(({ isException }) => isException)
  }

  /** Returns whether the file or directory at this relative path is excluded. */
  leaveOut(path: string): boolean {
    if (this.#patterns.length === 0) return false
    const names = path.split('/')
    let isLeftOut = false
    // While the path is included, only patterns that exclude are compared. While the path is excluded, only exceptions are
    // compared.
    for (const { parts, isException } of this.#patterns)
      if (isLeftOut === isException && matches(parts, names)) isLeftOut = !isException
    return isLeftOut
  }
}

/** Returns the patterns in a `.dockerignore` file. */
export const ignoredIn = (text: string): string[] =>
  text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.trim())
    .filter((line) => line !== '')
