import type { Organization } from '../../session/people.ts'

const rates = [
  ['All calls', 'authenticatedRateLimit', 'authenticatedRateLimitTtlSeconds'],
  ['New sandboxes', 'sandboxCreateRateLimit', 'sandboxCreateRateLimitTtlSeconds'],
  ['Starts, stops and changes of sandboxes', 'sandboxLifecycleRateLimit', 'sandboxLifecycleRateLimitTtlSeconds'],
] as const

const textOf = (limit: number | null, seconds: number | null): string => {
  if (limit === null) return 'The server’s default'
  return seconds === null ? `${limit} in the server’s default period` : `${limit} in ${seconds} seconds`
}

/** Shows the rate limits of the organization: how many calls it may make in which time. */
export const Rates = ({ organization }: { organization: Organization }) => (
  <dl className="facts">
    {rates.map(([name, limit, seconds]) => (
      <div key={limit} style={{ display: 'contents' }}>
        <dt>{name}</dt>
        <dd>{textOf(organization[limit], organization[seconds])}</dd>
      </div>
    ))}
  </dl>
)
