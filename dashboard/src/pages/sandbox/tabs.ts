// The tabs of a sandbox's page. The code of a tab is loaded when the tab is first opened.
import { type ComponentType, type LazyExoticComponent, lazy } from 'react'
import type { Sandbox } from '../../api/client.ts'

export type TabProps = { sandbox: Sandbox }

type Tab = { name: string; label: string; Content: LazyExoticComponent<ComponentType<TabProps>> }

export const tabs: readonly [Tab, ...Tab[]] = [
  { name: 'overview', label: 'Overview', Content: lazy(() => import('./overview/tab.tsx')) },
  { name: 'terminal', label: 'Terminal', Content: lazy(() => import('./terminal/tab.tsx')) },
  { name: 'files', label: 'Files', Content: lazy(() => import('./files/tab.tsx')) },
  { name: 'logs', label: 'Logs', Content: lazy(() => import('./logs/tab.tsx')) },
  { name: 'ports', label: 'Ports', Content: lazy(() => import('./ports/tab.tsx')) },
  { name: 'forks', label: 'Forks', Content: lazy(() => import('./forks/tab.tsx')) },
  { name: 'settings', label: 'Settings', Content: lazy(() => import('./settings/tab.tsx')) },
]
