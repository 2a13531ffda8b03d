// Quotes, escapes and variables in the words of an instruction, as a shell would take them but without running anything.

export type Variables = Readonly<Record<string, string | undefined>>

const lookUp = (variables: Variables, name: string) => (Object.hasOwn(variables, name) ? variables[name] : undefined)

/** The variable that starts behind a `$`: its value and where the text goes on; undefined if it is only a dollar sign. */
const variableAt = (text: string, at: number, variables: Variables): { value: string; next: number } | undefined => {
  const [plain] = /^[A-Za-z_]\w*/.exec(text.slice(at)) ?? []
  if (plain !== undefined) return { value: lookUp(variables, plain) ?? '', next: at + plain.length }
  const [whole, name, operator, word = ''] = /^\{([A-Za-z_]\w*)(?:(:?[-+])([^}]*))?\}/.exec(text.slice(at)) ?? []
  if (whole === undefined || name === undefined) return undefined
  const value = lookUp(variables, name)
  const isThere = operator?.startsWith(':') ? (value ?? '') !== '' : value !== undefined
  const next = at + whole.length
  if (operator?.endsWith('-')) return { value: isThere ? (value as string) : withVariables(word, variables), next }
  if (operator?.endsWith('+')) return { value: isThere ? withVariables(word, variables) : '', next }
  return { value: value ?? '', next }
}

const withVariables = (text: string, variables: Variables) => wordsOf(text, variables, '\\', false).join('')

/**
 * The words of a text, or all of it as one word. A variable is put in as it is: spaces in it part
 * nothing. Throws a SyntaxError where a quote is never closed.
 */
export const wordsOf = (text: string, variables: Variables, escapedBy: string, splits = true): string[] => {
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
      const variable = variableAt(text, at, variables)
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
