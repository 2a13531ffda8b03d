// Quotes, escapes and variables in the words of an instruction, as a shell would take them but without running anything.

export type Variables = Readonly<Record<string, string | undefined>>

/** How the words of an instruction are read. */
export type Reading = {
  variables: Variables
  escapedBy: string
  /** How many characters of variables may still be put in: each may be made of many others. */
  allowance: { left: number }
}

const lookUp = (variables: Variables, name: string) => (Object.hasOwn(variables, name) ? variables[name] : undefined)

/** The variable that starts behind a `$`: its value and where the text goes on; undefined if it is only a dollar sign. */
const variableAt = (text: string, at: number, reading: Reading): { value: string; next: number } | undefined => {
  const { variables } = reading
  const [plain] = /^[A-Za-z_]\w*/.exec(text.slice(at)) ?? []
  if (plain !== undefined) return { value: lookUp(variables, plain) ?? '', next: at + plain.length }
  const [whole, name, operator, word = ''] = /^\{([A-Za-z_]\w*)(?:(:?[-+])([^}]*))?\}/.exec(text.slice(at)) ?? []
  if (whole === undefined || name === undefined) return undefined
  const value = lookUp(variables, name)
  const isThere = operator?.startsWith(':') ? (value ?? '') !== '' : value !== undefined
  const next = at + whole.length
  if (operator?.endsWith('-')) return { value: isThere ? (value as string) : withVariables(word, reading), next }
  if (operator?.endsWith('+')) return { value: isThere ? withVariables(word, reading) : '', next }
  return { value: value ?? '', next }
}

const withVariables = (text: string, reading: Reading) => wordsOf(text, { ...reading, escapedBy: '\\' }, false).join('')

/**
 * The words of a text, or all of it as one word. A variable is put in as it is: spaces in it part
 * nothing. Throws a SyntaxError that says what is wrong.
 */
export const wordsOf = (text: string, reading: Reading, splits = true): string[] => {
  const { escapedBy, allowance } = reading
  const lastBrace = text.lastIndexOf('}')
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let at = 0; at < text.length; ) {
    const character = text[at] as string
    at++
    if (quote === "'") {
      if (character === "'") quote = ''
      else word = (word ?? '') + character
    } else if (character === escapedBy && at < text.length) {
      const next = text[at] as string
      at++
      const isKept = quote === '"' && !['"', '$', escapedBy].includes(next)
      word = (word ?? '') + (isKept ? escapedBy : '') + next
    } else if (character === '"' || (character === "'" && quote === '')) {
      quote = quote === '' ? character : ''
      word ??= ''
    } else if (character === '$') {
      // Where no brace closes, nobody has to look for one again and again.
      const variable = text[at] === '{' && at > lastBrace ? undefined : variableAt(text, at, reading)
      allowance.left -= variable?.value.length ?? 0
      if (allowance.left < 0) throw new SyntaxError('the definition is too long with its variables')
      word = (word ?? '') + (variable?.value ?? '$')
      at = variable?.next ?? at
    } else if (splits && quote === '' && /\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + character
  }
  if (quote !== '') throw new SyntaxError('a quote is never closed')
  if (word !== undefined) words.push(word)
  return words
}
