/** A thing that the host offers or lacks. `missing`: sandboxes cannot run; `warn`: they run, and something is lost. */
export type Finding = {
  name: string
  status: 'ok' | 'warn' | 'missing'
  found: string
  costs?: string
  remedy?: string
}

/** What a probe may use: an empty directory on the file system of the data directory, removed afterwards. */
export type ProbeContext = { dataDir: string; scratch: string; isRoot: boolean }

export type Probe = { name: string; run: (context: ProbeContext) => Promise<Finding> }

/** A probe that only root can run; others get an honest "not probed". */
export const asRoot = (name: string, run: Probe['run']): Probe => ({
  name,
  run: async (context) =>
    context.isRoot
      ? run(context)
      : { name, status: 'warn', found: 'not probed', costs: 'unknown', remedy: 'run the doctor as root' },
})

/** The last line of what a failed command said, which is the one that says why. */
export const reasonOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error)
  return text.trim().split('\n').at(-1) ?? text
}
