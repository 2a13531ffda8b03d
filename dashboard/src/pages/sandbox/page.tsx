import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Suspense, useEffect, useRef } from 'react'
import type { Sandbox } from '../../api/client.ts'
import { ApiProblem } from '../../api/problem.ts'
import { CopyText } from '../../ui/copy.tsx'
import { ErrorNotice } from '../../ui/error-notice.tsx'
import { Page, WhenLoaded } from '../../ui/page.tsx'
import { shownName } from '../../ui/shown-text.ts'
import { StateBadge } from '../../ui/state-badge.tsx'
import { Condition } from './condition.tsx'
import { Gone } from './gone.tsx'
import { HeadActions } from './head-actions.tsx'
import { tabs } from './tabs.ts'
import { useSandbox } from './use-sandbox.ts'
import { nameOf } from './words.ts'
import './sandbox.css'

const TabBar = ({ sandboxId, open }: { sandboxId: string; open: string }) => {
  const bar = useRef<HTMLElement>(null)
  // Scrolls the bar of tabs, which is too wide for small screens, to the open tab.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect must run when `open` changes, but does not read it
  useEffect(() => {
    const tab = bar.current?.querySelector<HTMLElement>('[aria-current="page"]')
    if (tab && bar.current) bar.current.scrollLeft = tab.offsetLeft - bar.current.offsetLeft - 24
  }, [open])
  return (
    <nav ref={bar} className="tabs" aria-label="Parts of this sandbox">
      {tabs.map(({ name, label }) => (
        <Link
          key={name}
          to="/sandboxes/$sandboxId/$tab"
          params={{ sandboxId, tab: name }}
          className="tab"
          aria-current={name === open ? 'page' : undefined}
        >
          {label}
        </Link>
      ))}
    </nav>
  )
}

type LoadedProps = { sandbox: Sandbox; tab: string | undefined; error: unknown }

const Loaded = ({ sandbox, tab, error }: LoadedProps) => {
  const { name, Content } = tabs.find((each) => each.name === tab) ?? tabs[0]
  return (
    <Page
      title={shownName(nameOf(sandbox))}
      description={
        <span className="row">
          <span role="status">
            <StateBadge state={sandbox.state} />
          </span>
          <CopyText text={sandbox.id} />
        </span>
      }
      actions={<HeadActions sandbox={sandbox} />}
    >
      {error !== null && <ErrorNotice error={error} />}
      <Condition sandbox={sandbox} />
      <TabBar sandboxId={sandbox.id} open={name} />
      <Suspense fallback={<div className="waiting">Loading…</div>}>
        <Content sandbox={sandbox} />
      </Suspense>
    </Page>
  )
}

/**
 * The page of one sandbox. Its URL contains the sandbox's id. A URL with the sandbox's name is redirected to the URL with the id.
 */
const SandboxPage = () => {
  const { sandboxId, tab } = useParams({ strict: false }) as { sandboxId: string; tab?: string }
  const query = useSandbox(sandboxId)
  const navigate = useNavigate()
  const { data: sandbox, error } = query
  const id = sandbox?.id
  useEffect(() => {
    if (id === undefined || id === sandboxId) return
    void navigate({
      to: '/sandboxes/$sandboxId/$tab',
      params: { sandboxId: id, tab: tab ?? tabs[0].name },
      replace: true,
    })
  }, [id, sandboxId, tab, navigate])
  if (error instanceof ApiProblem && error.status === 404)
    return <Gone sandboxId={id ?? sandboxId} name={sandbox && shownName(nameOf(sandbox))} />
  if (sandbox === undefined)
    return (
      <Page title="Sandbox">
        <WhenLoaded query={query}>{() => null}</WhenLoaded>
      </Page>
    )
  return <Loaded key={sandbox.id} sandbox={sandbox} tab={tab} error={error} />
}

export default SandboxPage
