import { useQuery } from '@tanstack/react-query'
import type { Sandbox } from '../../../api/client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'
import { Button } from '../../../ui/button.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { Empty, WhenLoaded } from '../../../ui/page.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { TimeAgo } from '../../../ui/time.tsx'
import { listPtys } from './pty-calls.ts'

type OthersProps = {
  sandbox: Sandbox
  openIds: ReadonlySet<string>
  isOpen: boolean
  onClose: () => void
  onOpen: (id: string) => void
}

const Others = ({ sandbox, openIds, onOpen }: Omit<OthersProps, 'isOpen' | 'onClose'>) => {
  const organizationId = useOrganizationId()
  const query = useQuery({
    queryKey: [organizationId, 'terminals', sandbox.id],
    queryFn: () => listPtys(sandbox),
    staleTime: 0,
  })
  return (
    <WhenLoaded query={query}>
      {(sessions) => {
        const others = sessions.filter(({ id }) => !openIds.has(id))
        if (others.length === 0)
          return <Empty title="No other terminals">Terminals of your programs and of other people appear here.</Empty>
        return (
          <ul className="other-terminals">
            {others.map(({ id, cwd, createdAt }) => (
              <li key={id}>
                <span className="stack" style={{ gap: 0 }}>
                  <span className="mono wrap-anywhere">{shownName(id)}</span>
                  <span className="muted small wrap-anywhere">
                    Begun <TimeAgo time={createdAt} /> in {shownName(cwd)}
                  </span>
                </span>
                <Button compact onClick={() => onOpen(id)}>
                  Open
                </Button>
              </li>
            ))}
          </ul>
        )
      }}
    </WhenLoaded>
  )
}

/** Lists the terminals of this sandbox that are not open on this page. Programs, other people or other browsers made them. */
export const OthersDialog = ({ isOpen, onClose, ...rest }: OthersProps) => (
  <Dialog
    title="Other terminals of this sandbox"
    description="Everyone who opens the same terminal sees the same output and can type."
    isOpen={isOpen}
    onClose={onClose}
  >
    <Others {...rest} />
    <div className="dialog-actions">
      <Button onClick={onClose}>Close</Button>
    </div>
  </Dialog>
)
