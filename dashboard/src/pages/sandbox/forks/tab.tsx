import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { Button } from '../../../ui/button.tsx'
import { CopyText } from '../../../ui/copy.tsx'
import { WhenLoaded } from '../../../ui/page.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { StateBadge } from '../../../ui/state-badge.tsx'
import { TimeAgo } from '../../../ui/time.tsx'
import { ForkDialog } from '../dialogs.tsx'
import { isAtRest } from '../possible.ts'
import type { TabProps } from '../tabs.ts'
import { type Member, mostForks, useAncestors, useForks } from './family.ts'
import './forks.css'

const Box = ({ member, isThis, children }: { member: Member; isThis?: boolean; children?: ReactNode }) => (
  <div className={isThis ? 'tree-box this' : 'tree-box'} aria-current={isThis ? 'true' : undefined}>
    <div className="row">
      {isThis ? (
        <strong className="wrap-anywhere">{shownName(member.name)}</strong>
      ) : (
        <Link to="/sandboxes/$sandboxId/$tab" params={{ sandboxId: member.id, tab: 'forks' }} className="wrap-anywhere">
          {shownName(member.name)}
        </Link>
      )}
      <StateBadge state={member.state} />
      {isThis && <span className="muted small">this sandbox</span>}
    </div>
    <div className="row small muted">
      <CopyText text={member.id} shown={member.id.slice(0, 8)} />
      <TimeAgo time={member.createdAt} />
      {children}
    </div>
  </div>
)

/** Shows the forks of a sandbox. Each fork can be opened to show its own forks, which are fetched only then. */
const Forks = ({ of, isOpen }: { of: Member; isOpen: boolean }) => {
  const query = useForks(of.id, isOpen)
  if (!isOpen) return null
  return (
    <WhenLoaded query={query}>
      {(forks) =>
        forks.length === 0 ? (
          <div className="muted small tree-none">This sandbox has no forks.</div>
        ) : (
          <ul className="tree">
            {forks.map((fork) => (
              <Branch key={fork.id} member={fork} />
            ))}
            {forks.length >= mostForks && <li className="muted small">Only the newest {mostForks} forks are shown.</li>}
          </ul>
        )
      }
    </WhenLoaded>
  )
}

const Branch = ({ member }: { member: Member }) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <li>
      <Box member={member}>
        <Button kind="quiet" compact aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide forks' : 'Show forks'}
          <span className="visually-hidden"> of {shownName(member.name)}</span>
        </Button>
      </Box>
      <Forks of={member} isOpen={isOpen} />
    </li>
  )
}

/** Draws the ancestors of a sandbox one below the other, then the sandbox itself, and its forks below it. */
const Line = ({ ancestors, sandbox }: { ancestors: readonly Member[]; sandbox: Member }) => {
  const [first, ...rest] = ancestors
  return (
    <ul className="tree">
      <li>
        {first === undefined ? (
          <>
            <Box member={sandbox} isThis />
            <Forks of={sandbox} isOpen />
          </>
        ) : (
          <>
            <Box member={first} />
            <Line ancestors={rest} sandbox={sandbox} />
          </>
        )}
      </li>
    </ul>
  )
}

const ForksTab = ({ sandbox }: TabProps) => {
  const [isForking, setForking] = useState(false)
  const query = useAncestors(sandbox.id)
  const isOrphan = sandbox.forkKind !== undefined && query.data?.length === 0
  return (
    <section className="card" aria-labelledby="family">
      <div className="card-head">
        <h2 id="family">Forks</h2>
        <Button disabled={!isAtRest(sandbox.state)} onClick={() => setForking(true)}>
          Fork…
        </Button>
      </div>
      <div className="card-body">
        <p className="muted">
          A fork starts with the files of its parent. Later changes in one sandbox do not affect the other.
        </p>
        {isOrphan && (
          <div className="muted">This sandbox is a fork. The sandboxes that it comes from no longer exist.</div>
        )}
        <WhenLoaded query={query}>{(ancestors) => <Line ancestors={ancestors} sandbox={sandbox} />}</WhenLoaded>
      </div>
      {isForking && <ForkDialog sandbox={sandbox} onClose={() => setForking(false)} />}
    </section>
  )
}

export default ForksTab
