import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { CopyText } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { WhenLoaded } from '../../ui/page.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { Table } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { toast, toastError } from '../../ui/toast.tsx'
import type { Endpoint } from './use-webhooks.ts'

const path = '/webhooks/organizations/{organizationId}/endpoints/{endpointId}/attempts'
type Page = AnswerTo<typeof path, 'get'>
type Attempt = Page['items'][number]

const rowsPerCall = 50
/** How often the delivery attempts are fetched again while they are shown, in ms. The server sends no events about them. */
const lookEvery = 10_000

const useAttempts = (endpointId: string) => {
  const organizationId = useOrganizationId()
  const query = useInfiniteQuery({
    queryKey: [organizationId, 'webhooks', 'attempts', endpointId],
    initialPageParam: undefined as string | undefined,
    refetchInterval: lookEvery,
    queryFn: ({ pageParam, signal }): Promise<Page> => {
      const cursor = pageParam === undefined ? {} : { cursor: pageParam }
      return answerOf(
        control.GET(path, {
          params: { path: { organizationId, endpointId }, query: { limit: rowsPerCall, ...cursor } },
          signal,
        }),
      )
    },
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  })
  return { ...query, data: query.data?.pages.flatMap(({ items }) => items) }
}

const Row = ({ attempt, onResend }: { attempt: Attempt; onResend: () => void }) => {
  const { messageId, event, number, at, durationMilliseconds, status, error, delivered } = attempt
  return (
    <tr>
      <td className="time">
        <TimeAgo time={at} />
      </td>
      <td>
        <code>{event}</code>
        <div className="small">
          <CopyText text={messageId} shown={messageId.slice(0, 12)} />
        </div>
      </td>
      <td className="number">{number}</td>
      <td className="wrap-anywhere">
        <span className={`badge ${delivered ? 'ok' : 'danger'}`}>{status ?? 'no answer'}</span>
        <div className="muted small">
          {durationMilliseconds} ms{error !== null && `: ${shownText(error)}`}
        </div>
      </td>
      <td className="actions">
        <Button compact onClick={onResend}>
          Send again
        </Button>
      </td>
    </tr>
  )
}

type AttemptsProps = {
  endpoint: Endpoint
  onResend: (messageId: string) => Promise<unknown>
  onClose: () => void
}

/** Shows the messages that were sent to a webhook endpoint in the last week, and whether each arrived. */
export const AttemptsDialog = ({ endpoint, onResend, onClose }: AttemptsProps) => {
  const query = useAttempts(endpoint.id)
  const [isBusy, setBusy] = useState(false)
  const resend = async (messageId: string) => {
    if (isBusy) return
    setBusy(true)
    try {
      await onResend(messageId)
      toast('The message is sent again')
    } catch (error) {
      toastError('The message is not sent again', error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog
      title="Attempts"
      description="The attempts of the last week, newest first. A message is tried up to eleven times in a day and a half, after longer and longer pauses."
      isOpen
      isWide
      onClose={onClose}
    >
      <WhenLoaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="waiting">Nothing was sent yet. Create or stop a sandbox, and look again.</div>
          ) : (
            <Table
              label="Attempts"
              columns={[
                'When',
                'Event and message',
                <th key="Attempt" className="number">
                  Attempt
                </th>,
                'Answer',
              ]}
              rows={rows}
              pages={query}
            >
              {(attempt) => (
                <Row
                  key={`${attempt.messageId} ${attempt.number} ${attempt.at}`}
                  attempt={attempt}
                  onResend={() => void resend(attempt.messageId)}
                />
              )}
            </Table>
          )
        }
      </WhenLoaded>
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  )
}
