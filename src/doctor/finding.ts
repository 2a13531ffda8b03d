/**
 * A feature of the host. `missing`: sandboxes cannot run without the feature. `warn`: sandboxes run, but with a
 * drawback.
 */
export type Finding = {
  name: string
  status: 'ok' | 'warn' | 'missing'
  found: string
  costs?: string
  remedy?: string
}

/**
 * Parameters of a probe. `scratch`: an empty directory on the data directory's file system, which is removed after
 * the probes.
 */
export type ProbeContext = { dataDir: string; scratch: string; isRoot: boolean }

export type Probe = { name: string; run: (context: ProbeContext) => Promise<Finding> }

/** A probe that only root can run. For other users its result is "not probed". */
export const asRoot = (name: string, run: Probe['run']): Probe => ({
  name,
  run: async (context) =>
    context.isRoot
      ? run(context)
      : { name, status: 'warn', found: 'not probed', costs: 'unknown', remedy: 'run the doctor as root' },
})

/** Returns the last line of a failed command's output, which usually has the reason. */
export const reasonOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error)
  return text.trim().split('\n').at(-1) ?? text
}
