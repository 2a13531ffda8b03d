/**
 * What a probe has found out about one feature of the host. `missing`: sandboxes cannot run. `warn`: they run, but with a
 * drawback.
 */
export type Finding = {
  name: string
  status: 'ok' | 'warn' | 'missing'
  found: string
  costs?: string
  remedy?: string
}

/** The arguments of a probe. `scratch`: an empty directory on the file system of the data directory. */
export type ProbeContext = { dataDir: string; scratch: string; isRoot: boolean }

export type Probe = { name: string; run: (context: ProbeContext) => Promise<Finding> }

/** Returns a probe that runs only if the user is root. For any other user, its finding says "not checked". */
export const asRoot = (name: string, run: Probe['run']): Probe => ({
  name,
  run: async (context) =>
    context.isRoot
      ? run(context)
      : { name, status: 'warn', found: 'not checked', costs: 'unknown', remedy: 'run the doctor as root' },
})

/** Returns the last line that a failed command has printed, because that line usually says why it failed. */
export const reasonOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error)
  return text.trim().split('\n').at(-1) ?? text
}
