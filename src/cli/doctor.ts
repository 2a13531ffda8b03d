// `alcove doctor`: tries each feature of the host that Alcove needs, and prints the results.
import { inspectHost } from '#src/doctor/inspect.ts'
import { renderFindings } from '#src/doctor/render.ts'

/** Prints the results of all probes. The exit code is 1 if sandboxes cannot run on this host. */
export const doctor = async (dataDir: string): Promise<void> => {
  const findings = await inspectHost({ dataDir })
  process.stdout.write(renderFindings(findings))
  if (findings.some(({ status }) => status === 'missing')) process.exitCode = 1
}
