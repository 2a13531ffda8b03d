import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState } from 'react'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { session } from '../../../session/session.ts'
import { useOrganizationId } from '../../../session/use-session.ts'
import { Button } from '../../../ui/button.tsx'
import { WhenLoaded } from '../../../ui/page.tsx'
import './resources.css'
import { curveOf, metricNames, quantities, type Series, summaryOf } from './usage.ts'

const Chart = lazy(() => import('./chart.tsx'))

const minute = 60_000

const ranges = [
  { label: '1 h', words: 'the last hour', minutes: 60 },
  { label: '6 h', words: 'the last 6 hours', minutes: 360 },
  { label: '2 d', words: 'the last 2 days', minutes: 2880 },
] as const

type Found = { series: Series; from: number; to: number }

const useUsage = (sandbox: Sandbox, minutes: number) => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'usage', sandbox.id, minutes],
    staleTime: minute,
    // A runner reports the usage of its running sandboxes once a minute. A sandbox that does not run has no usage.
    refetchInterval: sandbox.state === 'started' && minute,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Found> => {
      const to = session.now()
      const from = to - minutes * minute
      const { series } = await answerOf(
        control.GET('/sandbox/{sandboxIdOrName}/telemetry/metrics', {
          params: {
            path: { sandboxIdOrName: sandbox.id },
            query: { from: new Date(from).toISOString(), metricNames },
          },
          signal,
        }),
      )
      return { series, from: from / 1000, to: to / 1000 }
    },
  })
}

const Charts = ({ found, words }: { found: Found; words: string }) => {
  const curves = useMemo(
    () => quantities.map((quantity) => ({ quantity, curve: curveOf(found.series, quantity) })),
    [found.series],
  )
  if (curves.every(({ curve }) => curve.times.length === 0))
    return <div className="muted">It was not measured in {words}. A sandbox is measured while it runs.</div>
  return (
    <div className="charts">
      {curves.map(({ quantity, curve }) => (
        <figure key={quantity.name} aria-label={`${quantity.name} in ${words}`}>
          <h3>{quantity.name}</h3>
          <p className="muted small">{summaryOf(quantity, curve) ?? 'Not measured'}</p>
          <Suspense fallback={<div className="chart-space" />}>
            <Chart quantity={quantity} curve={curve} from={found.from} to={found.to} />
          </Suspense>
        </figure>
      ))}
    </div>
  )
}

/** What the sandbox used of its processors, memory and disk. */
export const Resources = ({ sandbox }: { sandbox: Sandbox }) => {
  const [range, setRange] = useState<(typeof ranges)[number]>(ranges[0])
  const query = useUsage(sandbox, range.minutes)
  return (
    <section className="card" aria-labelledby="resources">
      <div className="card-head">
        <h2 id="resources">Resources</h2>
        <div className="row" role="group" aria-label="Time shown">
          {ranges.map((each) => (
            <Button
              key={each.label}
              compact
              kind={each === range ? undefined : 'quiet'}
              aria-pressed={each === range}
              onClick={() => setRange(each)}
            >
              {each.label}
            </Button>
          ))}
        </div>
      </div>
      <div className="card-body">
        <WhenLoaded query={query}>{(found) => <Charts found={found} words={range.words} />}</WhenLoaded>
      </div>
    </section>
  )
}
