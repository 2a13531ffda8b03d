// `alcove doctor`: finds out what the host supports, by trying it.
import { inspectHost } from '#src/doctor/inspect.ts'
import { renderFindings } from '#src/doctor/render.ts'

/** Prints the findings. The exit code is 1 if sandboxes cannot run on this host. */
export const doctor = async (dataDir: string): Promise<void> => {
  const findings = await inspectHost({ dataDir })
  process.stdout.write(renderFindings(findings))
  if (findings.some(({ status }) => status === 'missing')) process.exitCode = 1
}
