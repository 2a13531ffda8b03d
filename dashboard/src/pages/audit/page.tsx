import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { useIsOperator, useStanding } from '../../session/people.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { CheckField } from '../../ui/field.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { EntryRow } from './entry-row.tsx'
import { Filters } from './filters.tsx'
import { type AuditSearch, auditQuery, readAuditSearch } from './search.ts'
import './audit.css'

type AuditPageAnswer = AnswerTo<'/audit', 'get'>

const entriesPerPage = 50

const useLog = (search: AuditSearch, isEnabled: boolean) => {
  const organizationId = useOrganizationId()
  return useInfiniteQuery({
    queryKey: [organizationId, 'audit', search],
    enabled: isEnabled,
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: AuditPageAnswer) => last.nextToken,
    queryFn: ({ pageParam }) => {
      const query = {
        ...auditQuery(search),
        limit: entriesPerPage,
        ...(pageParam !== undefined && { nextToken: pageParam }),
      }
      const call = search.server
        ? control.GET('/audit', { params: { query } } as never)
        : control.GET('/audit/organizations/{organizationId}', { params: { path: { organizationId }, query } } as never)
      return answerOf(call as Promise<{ data?: AuditPageAnswer; response: Response }>)
    },
  })
}

const Log = ({ search, isEnabled }: { search: AuditSearch; isEnabled: boolean }) => {
  const query = useLog(search, isEnabled)
  const isFiltered = Object.keys(auditQuery(search)).length > 0
  return (
    <WhenLoaded query={query}>
      {({ pages }) => {
        const entries = pages.flatMap(({ items }) => items)
        if (entries.length === 0)
          return (
            <div className="card">
              <Empty title={isFiltered ? 'No entry matches these filters' : 'The log is empty'}>
                {isFiltered
                  ? 'Remove a filter, or choose a longer time.'
                  : 'This log shows every change: who made it, from where, and with what result.'}
              </Empty>
            </div>
          )
        return (
          <div className="card audit-log" aria-busy={query.isFetching}>
            {entries.map((entry) => (
              <EntryRow key={entry.id} entry={entry} />
            ))}
            <div className="row audit-more">
              {query.hasNextPage && (
                <Button compact disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                  {query.isFetchingNextPage ? 'Loading…' : 'Load older entries'}
                </Button>
              )}
              <span className="muted small">
                {entries.length} of {pages[0]?.total ?? entries.length}
              </span>
            </div>
          </div>
        )
      }}
    </WhenLoaded>
  )
}

const AuditPage = () => {
  const search = readAuditSearch(useSearch({ strict: false }))
  const navigate = useNavigate()
  const standing = useStanding()
  const isOperator = useIsOperator()
  const change = (next: AuditSearch) => void navigate({ to: '/audit', search: next as never, replace: true })
  const mayRead = search.server === true || (standing?.holds('read:audit_logs') ?? true)
  return (
    <Page
      title="Audit log"
      description="Who did what, when and from where. Newest first."
      actions={
        (isOperator || undefined) && (
          <CheckField
            label="The whole server"
            checked={search.server === true}
            onChange={(isServer) => {
              const { server: _, ...rest } = search
              change(isServer ? { ...rest, server: true } : rest)
            }}
          />
        )
      }
    >
      {mayRead ? (
        <>
          <Filters search={search} onChange={change} />
          <Log search={search} isEnabled={standing !== undefined} />
        </>
      ) : (
        <div className="card">
          <Empty title="You may not read the audit log">
            An owner of the organization can give you the role Auditor on the page “Members”.
          </Empty>
        </div>
      )}
    </Page>
  )
}

export default AuditPage
