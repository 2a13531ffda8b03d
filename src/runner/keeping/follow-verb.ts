// Measures each verb for telemetry: its duration, and a span in the trace of the request that caused the verb.
import { duration, span } from '#src/kit/telemetry/telemetry.ts'
import type { Assignment } from '#src/wire/runner-link.ts'

const durations = duration(
  'alcove.runner.verb.duration',
  'Duration of the verbs for sandboxes on this host, without the time in the queue.',
  [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300],
)

export const followVerb = async (
  { sandboxId, organizationId, generation }: Assignment,
  verb: string,
  work: () => Promise<void>,
): Promise<void> => {
  const attributes = {
    'alcove.sandbox': sandboxId,
    'alcove.organization.id': organizationId,
    'alcove.sandbox.generation': generation,
  }
  const begunAt = performance.now()
  let outcome = 'failed'
  try {
    await span(`sandbox ${verb}`, { kind: 'consumer', attributes }, work)
    outcome = 'done'
  } finally {
    durations.record((performance.now() - begunAt) / 1000, { 'alcove.verb': verb, 'alcove.outcome': outcome })
  }
}
