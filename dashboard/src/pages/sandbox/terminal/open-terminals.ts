// Stores which terminals of a sandbox this page shows, for a reload. The PTY sessions in the sandbox do not depend on the stored
// list.

export type OpenTerminal = {
  /** The id of the PTY session. */
  id: string
  name: string
  /** True until the server has made the PTY session. */
  isNew: boolean
}

export const mostTerminals = 12
export const longestName = 60

const keyOf = (sandboxId: string) => `alcove.terminals.${sandboxId}`

/** The first name of the form "Terminal 3" that no open terminal has. */
export const freeName = (open: readonly OpenTerminal[]): string => {
  for (let number = 1; ; number++) {
    const name = `Terminal ${number}`
    if (open.every((each) => each.name !== name)) return name
  }
}

export const newTerminal = (open: readonly OpenTerminal[], name = freeName(open)): OpenTerminal => {
  const random = crypto.getRandomValues(new Uint8Array(8))
  const id = `dashboard-${[...random].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
  return { id, name, isNew: true }
}

const isTerminal = (value: unknown): value is { id: string; name: string } => {
  const { id, name } = (value ?? {}) as Record<string, unknown>
  return typeof id === 'string' && /^[^/]{1,255}$/.test(id) && typeof name === 'string'
}

/** Reads the stored list of terminals. Returns an empty list if the stored text is not such a list. */
export const readTerminals = (stored: string | null): OpenTerminal[] => {
  let list: unknown
  try {
    list = JSON.parse(stored ?? '[]')
  } catch {
    return []
  }
  if (!Array.isArray(list)) return []
  return list
    .filter(isTerminal)
    .slice(0, mostTerminals)
    .map(({ id, name }) => ({ id, name: name.slice(0, longestName), isNew: false }))
}

export const loadTerminals = (sandboxId: string): OpenTerminal[] =>
  readTerminals(localStorage.getItem(keyOf(sandboxId)))

/** Stores the terminals whose PTY sessions exist. */
export const storeTerminals = (sandboxId: string, open: readonly OpenTerminal[]): void => {
  const made = open.filter(({ isNew }) => !isNew).map(({ id, name }) => ({ id, name }))
  if (made.length === 0) localStorage.removeItem(keyOf(sandboxId))
  else localStorage.setItem(keyOf(sandboxId), JSON.stringify(made))
}
