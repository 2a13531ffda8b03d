import { useQuery } from '@tanstack/react-query'
import { answerOf, control } from '../../api/client.ts'
import { session } from '../../session/session.ts'
import { useOrganizationId } from '../../session/use-session.ts'

const names = {
  cpu: 'daytona.sandbox.cpu.utilization',
  used: 'daytona.sandbox.memory.usage',
  limit: 'daytona.sandbox.memory.limit',
} as const

/** A runner reports usage once a minute. */
const minute = 60_000

const Meter = ({ percent, what }: { percent: number; what: string }) => (
  <span
    className={percent > 85 ? 'meter high' : 'meter'}
    role="meter"
    aria-valuenow={Math.round(percent)}
    aria-valuemin={0}
    aria-valuemax={100}
    aria-label={`${what} of this sandbox`}
    title={`${what}: ${Math.round(percent)} %`}
  >
    <span style={{ width: `${Math.min(percent, 100)}%` }} />
  </span>
)

/** Shows how much of its processors and memory a sandbox uses, from the last report of its runner. */
export const UsageBars = ({ sandboxId }: { sandboxId: string }) => {
  const organizationId = useOrganizationId()
  const { data } = useQuery({
    queryKey: [organizationId, 'usage-now', sandboxId],
    staleTime: minute,
    refetchInterval: minute,
    retry: false,
    queryFn: async ({ signal }) => {
      const { series } = await answerOf(
        control.GET('/sandbox/{sandboxIdOrName}/telemetry/metrics', {
          params: {
            path: { sandboxIdOrName: sandboxId },
            query: { from: new Date(session.now() - 5 * minute).toISOString(), metricNames: Object.values(names) },
          },
          signal,
        }),
      )
      const last = (name: string) => series.find(({ metricName }) => metricName === name)?.dataPoints.at(-1)?.value
      return { cpu: last(names.cpu) ?? 0, memory: ((last(names.used) ?? 0) / (last(names.limit) || 1)) * 100 }
    },
  })
  if (data === undefined) return null
  return (
    <span className="row" style={{ gap: 6 }}>
      <Meter percent={data.cpu} what="Processors" />
      <Meter percent={data.memory} what="Memory" />
    </span>
  )
}
