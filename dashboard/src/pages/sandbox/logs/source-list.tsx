import type { SessionCommand, ShellSession } from '../../../api/toolbox-client.ts'
import { shownName } from '../../../ui/shown-text.ts'
import { keyOf, type LogSource } from './log-source.ts'

type ListProps = {
  entrypoint: ShellSession | undefined
  sessions: readonly ShellSession[]
  chosen: string | undefined
  onChoose: (source: LogSource) => void
}

const ExitBadge = ({ command: { exitCode, oom } }: { command: SessionCommand }) => {
  if (exitCode === undefined) return <span className="badge info moving">runs</span>
  if (oom) return <span className="badge danger">out of memory</span>
  return <span className={exitCode === 0 ? 'badge ok' : 'badge danger'}>exit {exitCode}</span>
}

const onOneLine = (command: string): string => command.replace(/\r?\n/g, ' ⏎ ')

type RowProps = { command: SessionCommand; source: LogSource; isChosen: boolean; onChoose: ListProps['onChoose'] }

const Row = ({ command, source, isChosen, onChoose }: RowProps) => (
  <li>
    <button type="button" aria-pressed={isChosen} onClick={() => onChoose(source)}>
      <code className="cut" title={shownName(onOneLine(command.command), 1000)}>
        {shownName(onOneLine(command.command), 200) || '(no command)'}
      </code>
      <ExitBadge command={command} />
    </button>
  </li>
)

/** Lists the entrypoint and the commands of each session, newest command first. The entrypoint and each command have a log. */
export const SourceList = ({ entrypoint, sessions, chosen, onChoose }: ListProps) => (
  <nav className="card log-sources" aria-label="Logs">
    {(entrypoint?.commands.length ?? 0) > 0 && (
      <>
        <h3>Entrypoint</h3>
        <ul>
          {entrypoint?.commands.map((command) => (
            <Row
              key={command.id}
              command={command}
              source="entrypoint"
              isChosen={chosen === 'entrypoint'}
              onChoose={onChoose}
            />
          ))}
        </ul>
      </>
    )}
    {sessions.map(({ sessionId, commands }) => (
      <section key={sessionId} aria-label={`Session ${shownName(sessionId, 60)}`}>
        <h3 className="cut" title={shownName(sessionId)}>
          {shownName(sessionId, 60)}
        </h3>
        {commands.length === 0 && <div className="muted small">No commands yet</div>}
        <ul>
          {commands.toReversed().map((command) => {
            const source = { sessionId, commandId: command.id }
            return (
              <Row
                key={command.id}
                command={command}
                source={source}
                isChosen={chosen === keyOf(source)}
                onChoose={onChoose}
              />
            )
          })}
        </ul>
      </section>
    ))}
  </nav>
)
