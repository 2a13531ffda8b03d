import { useInfiniteQuery } from '@tanstack/react-query'
import { answerOf, control } from '../../../api/client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'
import { Button } from '../../../ui/button.tsx'
import { ErrorNotice } from '../../../ui/error-notice.tsx'
import { shownLines } from '../../../ui/shown-text.ts'
import { TimeAgo } from '../../../ui/time.tsx'
import { actorText, reasonsOf, type SandboxEvent, titleOf, toneOf } from './event-words.ts'
import { usePeople } from './use-people.ts'
import './timeline.css'

const eventsPerCall = 50

/** The events of a sandbox, newest first. They are fetched again whenever the sandbox changes. */
const useTimeline = (sandboxId: string) => {
  const organizationId = useOrganizationId()
  return useInfiniteQuery({
    queryKey: [organizationId, 'sandbox', sandboxId, 'events'],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      answerOf(
        control.GET('/sandbox/{sandboxIdOrName}/events', {
          params: {
            path: { sandboxIdOrName: sandboxId },
            query: { limit: eventsPerCall, ...(pageParam !== undefined && { cursor: pageParam }) },
          } as never,
          signal,
        }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  })
}

const Entry = ({ event, nameOf }: { event: SandboxEvent; nameOf: (id: string) => string | undefined }) => (
  <li className={`timeline-entry ${toneOf(event)}`}>
    <div className="row spread">
      <strong>{titleOf(event)}</strong>
      <span className="muted small">
        <TimeAgo time={event.at} />
      </span>
    </div>
    {reasonsOf(event).map((reason) => (
      <div key={reason} className="timeline-reason">
        {shownLines(reason)}
      </div>
    ))}
    <div className="muted small wrap-anywhere">by {actorText(event.by, nameOf)}</div>
  </li>
)

/** Shows the timeline of a sandbox, even if the sandbox was deleted. */
export const Timeline = ({ sandboxId }: { sandboxId: string }) => {
  const { data, error, isPending, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useTimeline(sandboxId)
  const nameOf = usePeople()
  const events = data?.pages.flatMap(({ items }) => items) ?? []
  return (
    <section className="card" aria-labelledby="timeline">
      <div className="card-head">
        <h2 id="timeline">Timeline</h2>
        <span className="muted small">The last 30 days</span>
      </div>
      <div className="card-body">
        {error !== null && <ErrorNotice error={error} retry={() => void refetch()} />}
        {isPending && error === null && <div className="waiting">Loading…</div>}
        {data !== undefined && events.length === 0 && (
          <div className="muted">Nothing happened to this sandbox in the last 30 days.</div>
        )}
        {events.length > 0 && (
          <ol className="timeline">
            {events.map((event) => (
              <Entry key={event.id} event={event} nameOf={nameOf} />
            ))}
          </ol>
        )}
        {hasNextPage && (
          <Button onClick={() => void fetchNextPage()} disabled={isFetchingNextPage}>
            {isFetchingNextPage ? 'Loading…' : 'Load more'}
          </Button>
        )}
      </div>
    </section>
  )
}
