// The form of the telemetry setting: headers as lines of `Name: value`.

/** Lines for a text area. The server sends asterisks instead of values, and keeps a value that comes back so. */
export const linesOf = (headers: Readonly<Record<string, unknown>> | null | undefined): string =>
  Object.entries(headers ?? {})
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

/** The headers of the lines. Throws a sentence with the line that is none, or the name that is there twice. */
export const headersOf = (text: string): Record<string, string> => {
  const headers = new Map<string, string>()
  for (const line of text.split('\n').map((each) => each.trim())) {
    if (line === '') continue
    const at = line.indexOf(':')
    if (at < 1) throw new Error(`“${line}” is not a header. Write “Name: value”.`)
    const name = line.slice(0, at).trim()
    if (headers.has(name)) throw new Error(`The header ${name} is there twice.`)
    headers.set(name, line.slice(at + 1).trim())
  }
  return Object.fromEntries(headers)
}
