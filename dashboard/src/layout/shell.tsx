import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { answerOf, control } from '../api/client.ts'
import { useOwnInvitations } from '../invitations/use-own-invitations.ts'
import { follow } from '../live/events.ts'
import { session } from '../session/session.ts'
import { useOrganizationId, useSessionState } from '../session/use-session.ts'
import { Button, IconButton } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Icon } from '../ui/icons.tsx'
import { Menu, MenuItem, MenuLine } from '../ui/menu.tsx'
import { groups } from './navigation.ts'
import { OrganizationMenu } from './organization-menu.tsx'
import { Palette } from './palette.tsx'
import { applyTheme, currentTheme, subscribeToTheme, themes } from './theme.ts'
import './layout.css'

const AccountMenu = () => {
  const { data } = useQuery({ queryKey: ['me'], queryFn: () => answerOf(control.GET('/users/me')) })
  const theme = useSyncExternalStore(subscribeToTheme, currentTheme)
  const invitations = useOwnInvitations().data?.length ?? 0
  const navigate = useNavigate()
  return (
    <Menu
      trigger={
        <Button kind="quiet">
          <span className="visually-hidden">Account </span>
          <span className="cut">{data?.email ?? 'Account'}</span>
          {invitations > 0 && (
            <span className="badge plain info" title={`Invitations for you: ${invitations}`}>
              {invitations}
            </span>
          )}
        </Button>
      }
    >
      <MenuItem onSelect={() => void navigate({ to: '/account' })}>Your account</MenuItem>
      <MenuLine />
      {themes.map((each) => (
        <MenuItem key={each} onSelect={() => applyTheme(each)}>
          {`Colours: ${each}`} {each === theme && <Icon name="check" />}
        </MenuItem>
      ))}
      <MenuLine />
      <MenuItem onSelect={() => void session.signOut()}>Sign out</MenuItem>
    </Menu>
  )
}

const ExpiredDialog = () => (
  <Dialog
    title="Your session has ended"
    description="Sign in again in a second window. This page keeps everything that you have typed."
    isOpen={useSessionState().name === 'expired'}
    onClose={() => {}}
  >
    <div className="dialog-actions">
      <Button kind="primary" onClick={() => session.signInAgain()}>
        Sign in again
      </Button>
    </div>
  </Dialog>
)

const useEvents = () => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const [isConnected, setConnected] = useState(true)
  useEffect(() => follow(queries, organizationId, setConnected), [queries, organizationId])
  return isConnected
}

/** The frame of all pages of the dashboard: the menu, the command palette (palette.tsx), and the page itself. */
export const Shell = () => {
  const isConnected = useEvents()
  const organizationId = useOrganizationId()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  const path = useRouterState({ select: ({ location }) => location.pathname })
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page closes the menu of small screens
  useEffect(() => setMenuOpen(false), [path])
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        // In a terminal, Ctrl+K is a key of the shell, so only ⌘K opens the command palette there.
        if (event.ctrlKey && (event.target as Element).closest('.xterm') !== null) return
        event.preventDefault()
        setPaletteOpen(true)
      }
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  }, [])
  return (
    <div className={isMenuOpen ? 'shell has-menu' : 'shell'}>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <div className="top-bar">
        <IconButton label="Menu" aria-expanded={isMenuOpen} onClick={() => setMenuOpen(!isMenuOpen)}>
          <Icon name="menu" />
        </IconButton>
        <strong>Alcove</strong>
        <IconButton label="Go to (Ctrl+K)" onClick={() => setPaletteOpen(true)}>
          <Icon name="search" />
        </IconButton>
      </div>
      <nav className="side" aria-label="Pages">
        <Link to="/" className="brand">
          <img src="/dashboard/icon.svg" alt="" />
          Alcove
        </Link>
        <OrganizationMenu />
        <Button kind="quiet" compact className="spread" onClick={() => setPaletteOpen(true)}>
          <span>Go to…</span>
          <kbd className="muted">Ctrl K</kbd>
        </Button>
        {groups.map(({ name, items }) => (
          <div key={name} className="stack" style={{ gap: 1 }}>
            {name !== '' && <div className="group">{name}</div>}
            {items.map(({ to, label }) => (
              <Link key={to} to={to} className="item">
                {label}
              </Link>
            ))}
          </div>
        ))}
        <div className="foot">
          <AccountMenu />
          <div className="muted small" style={{ paddingInline: 8 }}>
            Alcove {session.config.version}
          </div>
        </div>
      </nav>
      <main className="main" id="content">
        {!isConnected && (
          <div className="link-lost" role="status">
            The connection to the server was lost. This page shows the last known data and reconnects automatically.
          </div>
        )}
        {/* With the key, another organization gets a new page: typed text and selections must not be carried over. */}
        <Outlet key={organizationId} />
      </main>
      <Palette isOpen={isPaletteOpen} onClose={() => setPaletteOpen(false)} />
      <ExpiredDialog />
    </div>
  )
}
