import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Suspense, useEffect } from 'react'
import type { Sandbox } from '../../api/client.ts'
import { ApiProblem } from '../../api/problem.ts'
import { CopyText } from '../../ui/copy.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { tabs } from './tabs.ts'
import { useSandbox } from './use-sandbox.ts'
import './sandbox.css'

const TabBar = ({ sandboxId, open }: { sandboxId: string; open: string }) => (
  <nav className="tabs" aria-label="Parts of this sandbox">
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

const Loaded = ({ sandbox, tab }: { sandbox: Sandbox; tab: string | undefined }) => {
  const { name, Content } = tabs.find((each) => each.name === tab) ?? tabs[0]
  return (
    <Page
      title={sandbox.name}
      description={
        <span className="row">
          <StateBadge state={sandbox.state} />
          <CopyText text={sandbox.id} />
        </span>
      }
    >
      <TabBar sandboxId={sandbox.id} open={name} />
      <Suspense fallback={<div className="waiting">Loading…</div>}>
        <Content sandbox={sandbox} />
      </Suspense>
    </Page>
  )
}

/** One sandbox. The address has its id; an address with its name leads to that. */
const SandboxPage = () => {
  const { sandboxId, tab } = useParams({ strict: false }) as { sandboxId: string; tab?: string }
  const query = useSandbox(sandboxId)
  const navigate = useNavigate()
  const id = query.data?.id
  useEffect(() => {
    if (id === undefined || id === sandboxId) return
    void navigate({
      to: '/sandboxes/$sandboxId/$tab',
      params: { sandboxId: id, tab: tab ?? 'overview' },
      replace: true,
    })
  }, [id, sandboxId, tab, navigate])
  if (query.error instanceof ApiProblem && query.error.status === 404)
    return (
      <Page title="Sandbox">
        <Empty title="There is no such sandbox" />
      </Page>
    )
  if (query.data === undefined)
    return (
      <Page title="Sandbox">
        <WhenLoaded query={query}>{() => null}</WhenLoaded>
      </Page>
    )
  return <Loaded key={query.data.id} sandbox={query.data} tab={tab} />
}

export default SandboxPage
