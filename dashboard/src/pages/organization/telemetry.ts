// Turns the headers of the telemetry setting into lines of the form `Name: value`, and back.

/** Returns one line for each header. The values are asterisks: if the form sends them back, the server keeps the stored value. */
export const linesOf = (headers: Readonly<Record<string, unknown>> | null | undefined): string =>
  Object.entries(headers ?? {})
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

/** Reads one header from each line. Throws an error that quotes a line without a header, or a name that occurs twice. */
export const headersOf = (text: string): Record<string, string> => {
  const headers = new Map<string, string>()
  for (const line of text.split('\n').map((each) => each.trim())) {
    if (line === '') continue
    const at = line.indexOf(':')
    if (at < 1) throw new Error(`“${line}” is not a header. Write “Name: value”.`)
    const name = line.slice(0, at).trim()
    if (headers.has(name)) throw new Error(`The header ${name} is given twice.`)
    headers.set(name, line.slice(at + 1).trim())
  }
  return Object.fromEntries(headers)
}
