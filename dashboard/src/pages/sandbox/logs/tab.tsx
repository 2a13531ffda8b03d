import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { answerOf, type Sandbox } from '../../../api/client.ts'
import { type ShellSession, toolboxOf, unnoticed } from '../../../api/toolbox-client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'
import { Button } from '../../../ui/button.tsx'
import { Empty, WhenLoaded } from '../../../ui/page.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { NotRunning } from '../not-running.tsx'
import { LogPanel } from './log-panel.tsx'
import { keyOf, type LogSource } from './log-source.ts'
import { SourceList } from './source-list.tsx'
import './logs.css'

/** How often the lists of commands are fetched again while a command runs, in ms. The toolbox sends no events about commands. */
const runningMilliseconds = 5000

type Sources = { entrypoint: ShellSession; sessions: ShellSession[] }

const readSources = async (sandbox: Sandbox, signal: AbortSignal): Promise<Sources> => {
  const options = { headers: unnoticed, signal }
  const [entrypoint, sessions] = await Promise.all([
    answerOf(toolboxOf(sandbox).GET('/process/session/entrypoint', options)),
    answerOf(toolboxOf(sandbox).GET('/process/session', options)),
  ])
  return { entrypoint, sessions: sessions.filter(({ sessionId }) => sessionId !== entrypoint.sessionId) }
}

const runs = ({ commands }: ShellSession) => commands.some(({ exitCode }) => exitCode === undefined)

/** The first log to show: the log of the entrypoint or, without an entrypoint, of the newest command. */
const firstOf = ({ entrypoint, sessions }: Sources): LogSource | undefined => {
  if (entrypoint.commands.length > 0) return 'entrypoint'
  const session = sessions.findLast(({ commands }) => commands.length > 0)
  const command = session?.commands.at(-1)
  return session && command && { sessionId: session.sessionId, commandId: command.id }
}

const nameOf = (source: LogSource) =>
  source === 'entrypoint' ? 'the entrypoint' : `a command of session ${shownName(source.sessionId, 60)}`

/** The tab with the logs of a sandbox's entrypoint and of the commands in its sessions. */
const LogsTab = ({ sandbox }: { sandbox: Sandbox }) => {
  const organizationId = useOrganizationId()
  const [chosen, setChosen] = useState<LogSource>()
  const isRunning = sandbox.state === 'started'
  const query = useQuery({
    queryKey: [organizationId, 'logs', sandbox.id],
    queryFn: ({ signal }) => readSources(sandbox, signal),
    enabled: isRunning,
    refetchInterval: ({ state: { data } }) =>
      data !== undefined && [data.entrypoint, ...data.sessions].some(runs) && runningMilliseconds,
  })
  return (
    <div className="stack">
      {!isRunning && <NotRunning sandbox={sandbox} needs="Logs can be read only while the sandbox is running." />}
      {(isRunning || query.data !== undefined) && (
        <WhenLoaded query={query}>
          {(sources) => {
            const source = chosen ?? firstOf(sources)
            if (source === undefined && sources.sessions.length === 0)
              return (
                <Empty title="No logs yet" action={<Button onClick={() => void query.refetch()}>Refresh</Button>}>
                  Commands of sessions write logs, and so does the entrypoint of the image, if the image has an
                  entrypoint.
                </Empty>
              )
            return (
              <div className="logs">
                <div className="stack">
                  <SourceList {...sources} chosen={source && keyOf(source)} onChoose={setChosen} />
                  <Button compact onClick={() => void query.refetch()}>
                    Refresh the list
                  </Button>
                </div>
                {source !== undefined && (
                  <LogPanel key={keyOf(source)} sandbox={sandbox} source={source} label={nameOf(source)} />
                )}
              </div>
            )
          }}
        </WhenLoaded>
      )}
    </div>
  )
}

export default LogsTab
