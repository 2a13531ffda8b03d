// Reads the settings of a program from its environment variables. All errors are reported together.

export type Settings = {
  /** Reads a text. If the variable is absent, this is reported as an error. */
  text: (name: string, meaning: string) => string
  optional: (name: string) => string | undefined
  url: (name: string, meaning: string) => URL
  /** Reads `host:port`. */
  address: (name: string, meaning: string) => { host: string; port: number }
  /** Reads a whole number that is not negative. */
  whole: (name: string, meaning: string) => number
  /** Adds an error about a setting, for a check that only the calling program can make. */
  complain: (sentence: string) => void
}

const unset = { url: new URL('http://unset.invalid'), address: { host: '', port: 0 } }

/** Reads all settings of a program. Throws one Error with a line for each wrong setting. An empty variable counts as absent. */
export const readSettings = <T>(environment: NodeJS.ProcessEnv, read: (settings: Settings) => T): T => {
  const complaints: string[] = []
  const optional = (name: string) => environment[name] || undefined
  const parsed = <V>(name: string, meaning: string, fallback: V, parse: (value: string) => V | undefined): V => {
    const value = optional(name)
    const result = value === undefined ? undefined : parse(value)
    if (result !== undefined) return result
    complaints.push(value === undefined ? `${name} is missing: ${meaning}` : `${name} is not usable: ${meaning}`)
    return fallback
  }
  const result = read({
    optional,
    complain: (sentence) => void complaints.push(sentence),
    text: (name, meaning) => parsed(name, meaning, '', (value) => value),
    url: (name, meaning) =>
      parsed(name, meaning, unset.url, (value) => (URL.canParse(value) ? new URL(value) : undefined)),
    address: (name, meaning) =>
      parsed(name, meaning, unset.address, (value) => {
        const [, host, port] = /^\[?([^[\]]+)\]?:(\d{1,5})$/.exec(value) ?? []
        return host !== undefined && Number(port) < 65536 ? { host, port: Number(port) } : undefined
      }),
    whole: (name, meaning) =>
      parsed(name, meaning, 0, (value) => (/^\d{1,15}$/.test(value) ? Number(value) : undefined)),
  })
  if (complaints.length > 0) throw new Error(complaints.join('\n'))
  return result
}

/** Reads names from a text, in which commas or spaces separate them. */
export const namesIn = (list = ''): string[] => list.split(/[\s,]+/).filter((name) => name !== '')
