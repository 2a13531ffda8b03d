// Expands quotes, escapes and variables in the words of an instruction, by the rules of a shell. Nothing is executed.
import { replaced, withoutEnd, withoutStart } from './patterns.ts'

export type Variables = Readonly<Record<string, string | undefined>>

/** Variables, escape character and limits for reading the words of an instruction. */
export type Reading = {
  variables: Variables
  escapedBy: string
  /**
   * Number of characters that variables may still insert. Each ARG may contain the value of the previous ARG twice, so the values
   * of a few lines can become very long. A step of pattern matching counts as one character.
   */
  allowance: { left: number }
  /** Value used for a variable that is not set. Default: empty. */
  unset?: string
}

export class WordError extends Error {
  override readonly name = 'WordError'
  /** Advice for the user: what to write instead. */
  readonly instead: string

  constructor(why: string, instead: string) {
    super(why)
    this.instead = instead
  }
}

/** Maximum depth of `${…}` inside `${…}`. */
const deepest = 20

const operators = ['##', '#', '%%', '%', '//', '/', ':-', ':+', ':?', '-', '+', '?']

class WordReader {
  readonly #text: string
  readonly #reading: Reading
  #at = 0
  #depth = 0

  constructor(text: string, reading: Reading) {
    this.#text = text
    this.#reading = reading
  }

  /**
   * Reads words up to the end of the text, or up to an unquoted character in `ends`. If `splits` is true, white space separates
   * words.
   */
  words(splits: boolean, ends = ''): string[] {
    const { escapedBy } = this.#reading
    const words: string[] = []
    let word: string | undefined
    let quote = ''
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at] as string
      if (quote === '' && ends.includes(character)) break
      this.#at++
      if (quote === "'") {
        if (character === "'") quote = ''
        else word = (word ?? '') + character
      } else if (character === escapedBy && this.#at < this.#text.length) {
        const next = this.#text[this.#at] as string
        this.#at++
        const isKept = quote === '"' && !['"', '$', escapedBy].includes(next)
        word = (word ?? '') + (isKept ? escapedBy : '') + next
      } else if (character === '"' || (character === "'" && quote === '')) {
        quote = quote === '' ? character : ''
        word ??= ''
      } else if (character === '$') {
        word = (word ?? '') + this.#variable()
      } else if (splits && quote === '' && /\s/.test(character)) {
        if (word !== undefined) words.push(word)
        word = undefined
      } else word = (word ?? '') + character
    }
    if (quote !== '') throw new WordError('a quote is never closed', 'write the same quote at its end, or \\ before it')
    if (word !== undefined) words.push(word)
    return words
  }

  /** Reads the lines of a here-document. Quotes have no special meaning in a here-document. */
  lines(): string {
    let result = ''
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at] as string
      this.#at++
      if (character === '\\' && ['$', '\\', '`'].includes(this.#text[this.#at] ?? '')) {
        result += this.#text[this.#at]
        this.#at++
      } else result += character === '$' ? this.#variable() : character
    }
    return result
  }

  /** Reads the variable after a `$` and returns its value. */
  #variable(): string {
    const value = this.#text[this.#at] === '{' ? this.#braced() : this.#plain()
    this.#spend(value.length)
    return value
  }

  #spend(amount: number): void {
    this.#reading.allowance.left -= amount
    if (this.#reading.allowance.left < 0)
      throw new WordError('the values of its variables make the definition too long', 'write shorter values')
  }

  #name(): string {
    const shape = /[A-Za-z_]\w*/y
    shape.lastIndex = this.#at
    const [name = ''] = shape.exec(this.#text) ?? []
    this.#at += name.length
    return name
  }

  #valueOf(name: string): string | undefined {
    const { variables, unset } = this.#reading
    return (Object.hasOwn(variables, name) ? variables[name] : undefined) ?? unset
  }

  #plain(): string {
    const name = this.#name()
    return name === '' ? '$' : (this.#valueOf(name) ?? '')
  }

  #braced(): string {
    this.#at++
    this.#depth++
    if (this.#depth > deepest)
      throw new WordError('variables are nested too deeply', 'write an ARG for the inner variables')
    const name = this.#name()
    const operator = operators.find((each) => this.#text.startsWith(each, this.#at)) ?? ''
    this.#at += operator.length
    if (name === '' || (operator === '' && ![undefined, '}'].includes(this.#text[this.#at])))
      throw new WordError(
        '"${" does not begin a valid variable',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the text shows the syntax of a variable.
        'write for example ${NAME} or ${NAME:-value}, or \\$ for the character $',
      )
    const replaces = operator.startsWith('/')
    const word = this.words(false, replaces ? '/}' : '}').join('')
    let by = ''
    if (replaces && this.#text[this.#at] === '/') {
      this.#at++
      by = this.words(false, '}').join('')
    }
    if (this.#text[this.#at] !== '}')
      throw new WordError('a "${" is never closed', 'write } at its end, or \\$ for the character $')
    this.#at++
    this.#depth--
    return this.#applied(name, operator, word, by)
  }

  #applied(name: string, operator: string, word: string, by: string): string {
    const value = this.#valueOf(name)
    const spend = (steps: number) => this.#spend(steps)
    const isThere = operator.startsWith(':') ? (value ?? '') !== '' : value !== undefined
    switch (operator.replace(':', '')) {
      case '-':
        return isThere ? (value as string) : word
      case '+':
        return isThere ? word : ''
      case '?':
        // If A is set, a shell ignores the `?` in `${A:-${B:?text}}`. Alcove differs: the build fails if B is not set, whatever A
        // is.
        if (!isThere)
          throw new WordError(
            `${name}: ${word || 'this variable has no value'}`,
            `write ARG ${name}=VALUE above this line`,
          )
        return value as string
      case '#':
      case '##':
        return withoutStart(value ?? '', word, operator === '##', spend)
      case '%':
      case '%%':
        return withoutEnd(value ?? '', word, operator === '%%', spend)
      case '/':
      case '//':
        return replaced(value ?? '', word, by, operator === '//', spend)
      default:
        return value ?? ''
    }
  }
}

/** Returns the words of a text. Spaces inside the value of a variable do not split words. Throws a WordError. */
export const wordsOf = (text: string, reading: Reading, splits = true): string[] =>
  new WordReader(text, reading).words(splits)

/** Expands the variables in a text of several lines. Quotes stay in the text. `\$` becomes a plain `$`. */
export const linesWith = (text: string, reading: Reading): string => new WordReader(text, reading).lines()
