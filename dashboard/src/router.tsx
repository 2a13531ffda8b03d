// Says which address below /dashboard shows which page. The code of a page is loaded when the page is first opened.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import type { ComponentType } from 'react'
import { Shell } from './layout/shell.tsx'
import { readListSearch } from './pages/sandboxes/search.ts'
import { readSnapshotSearch } from './pages/snapshots/search.ts'
import { Empty, Page } from './ui/page.tsx'

const NotFound = () => (
  <Page title="No such page">
    <Empty title="There is no page at this address" />
  </Page>
)

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })

const index = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/sandboxes' })
  },
})

const sandboxes = createRoute({
  getParentRoute: () => root,
  path: '/sandboxes',
  validateSearch: readListSearch,
  component: lazyRouteComponent(() => import('./pages/sandboxes/page.tsx')),
})

const sandbox = createRoute({
  getParentRoute: () => root,
  path: '/sandboxes/$sandboxId',
  component: lazyRouteComponent(() => import('./pages/sandbox/page.tsx')),
})

/** One tab of a sandbox's page, such as its terminal. pages/sandbox/tabs.ts lists the tabs. */
const sandboxTab = createRoute({
  getParentRoute: () => root,
  path: '/sandboxes/$sandboxId/$tab',
  component: lazyRouteComponent(() => import('./pages/sandbox/page.tsx')),
})

const snapshots = createRoute({
  getParentRoute: () => root,
  path: '/snapshots',
  validateSearch: readSnapshotSearch,
  component: lazyRouteComponent(() => import('./pages/snapshots/page.tsx')),
})

const page = <Path extends string>(path: Path, load: () => Promise<{ default: ComponentType }>) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load) })

const routeTree = root.addChildren([
  index,
  sandboxes,
  sandbox,
  sandboxTab,
  snapshots,
  page('/snapshots/$snapshotId', () => import('./pages/snapshots/snapshot-page.tsx')),
  page('/warm-pools', () => import('./pages/warm-pools/page.tsx')),
  page('/volumes', () => import('./pages/volumes/page.tsx')),
  page('/secrets', () => import('./pages/secrets/page.tsx')),
  page('/registries', () => import('./pages/registries/page.tsx')),
  page('/keys', () => import('./pages/keys/page.tsx')),
  page('/members', () => import('./pages/members/page.tsx')),
  page('/usage', () => import('./pages/usage/page.tsx')),
  page('/webhooks', () => import('./pages/webhooks/page.tsx')),
  page('/audit', () => import('./pages/audit/page.tsx')),
  page('/identity-providers', () => import('./pages/identity-providers/page.tsx')),
  page('/organization', () => import('./pages/organization/page.tsx')),
  page('/regions', () => import('./pages/regions/page.tsx')),
  page('/account', () => import('./pages/account/page.tsx')),
  page('/api', () => import('./pages/api/page.tsx')),
])

export const router = createRouter({ routeTree, basepath: '/dashboard', defaultPreload: 'intent' })

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
