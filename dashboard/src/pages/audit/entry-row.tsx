import type { ReactNode } from 'react'
import type { AnswerTo } from '../../api/client.ts'
import { CopyText } from '../../ui/copy.tsx'
import { TimeAgo, timeText } from '../../ui/time.tsx'
import { wordsOf } from './search.ts'

export type Entry = AnswerTo<'/audit', 'get'>['items'][number]

const credentials: Record<Entry['credential'], string> = {
  api_key: 'API key',
  jwt: 'Signed in',
  sso: 'Single sign-on',
  portal: 'Link to the webhook pages',
  link: 'One-time sign-in link',
}

const Outcome = ({ entry: { statusCode } }: { entry: Entry }) => {
  if (statusCode === undefined) return <span className="badge warn">No end</span>
  const look = statusCode < 400 ? 'ok' : statusCode < 500 ? 'warn' : 'danger'
  return <span className={`badge ${look}`}>{statusCode}</span>
}

const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </>
)

const Details = ({ entry }: { entry: Entry }) => (
  <dl className="facts audit-details">
    <Fact name="Time">{timeText(entry.createdAt)}</Fact>
    <Fact name="Call">
      <code>{entry.call}</code>
    </Fact>
    {Object.entries(entry.params).map(([name, value]) => (
      <Fact key={name} name={name}>
        <CopyText text={String(value)} />
      </Fact>
    ))}
    {entry.targets.length > 0 && (
      <Fact name="Targets">
        <span className="row">
          {entry.targets.map((target) => (
            <CopyText key={target} text={target} />
          ))}
        </span>
      </Fact>
    )}
    <Fact name="By">
      <bdi>{entry.actorEmail}</bdi> <CopyText text={entry.actorId} />
    </Fact>
    <Fact name="Credential">
      {credentials[entry.credential] ?? entry.credential}
      {entry.keyName !== undefined && (
        <>
          {' '}
          <strong>
            <bdi>{entry.keyName}</bdi>
          </strong>
        </>
      )}
    </Fact>
    <Fact name="From">
      <CopyText text={entry.ipAddress} /> <bdi className="muted">{entry.userAgent}</bdi>
    </Fact>
    {entry.organizationId !== undefined && (
      <Fact name="Organization">
        <CopyText text={entry.organizationId} />
      </Fact>
    )}
    <Fact name="Request">
      <CopyText text={entry.requestId} />
    </Fact>
    <Fact name="Outcome">
      {entry.statusCode ?? 'The call is still running, or the server was stopped during the call.'}{' '}
      {entry.code !== undefined && <code>{entry.code}</code>} {entry.errorMessage}
    </Fact>
  </dl>
)

/** Shows one entry of the audit log as a row. A click on it shows the details. */
export const EntryRow = ({ entry }: { entry: Entry }) => {
  const target = entry.targets.find((each) => each !== entry.targetId) ?? entry.targetId
  return (
    <details className="audit-entry">
      <summary>
        <span className="audit-time muted">
          <TimeAgo time={entry.createdAt} />
        </span>
        <span className="audit-what">
          <strong>{wordsOf(entry.targetType)}</strong> {wordsOf(entry.action)}
          {target !== undefined && (
            <>
              {' '}
              <bdi className="muted wrap-anywhere">{target}</bdi>
            </>
          )}
        </span>
        <span className="audit-who cut">
          <bdi>{entry.actorEmail}</bdi>
        </span>
        <span className="audit-outcome">
          <Outcome entry={entry} />
        </span>
      </summary>
      <Details entry={entry} />
    </details>
  )
}
