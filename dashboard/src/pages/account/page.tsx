import { useSyncExternalStore } from 'react'
import { OwnInvitations } from '../../invitations/own-invitations.tsx'
import { applyTheme, currentTheme, subscribeToTheme, type Theme } from '../../layout/theme.ts'
import { useMe } from '../../session/people.ts'
import { session } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { CopyText } from '../../ui/copy.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Page, WhenLoaded } from '../../ui/page.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { LinkedAccounts } from './linked-accounts.tsx'
import { PendingLinks } from './pending-links.tsx'

const themeOptions = [
  { value: 'system', label: 'Same as the system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
]

const AccountPage = () => {
  const me = useMe()
  const theme = useSyncExternalStore(subscribeToTheme, currentTheme)
  return (
    <Page
      title="Your account"
      description="Your account is the same in all of your organizations."
      actions={<Button onClick={() => void session.signOut()}>Sign out</Button>}
    >
      <PendingLinks />
      <OwnInvitations />
      <section className="card" aria-label="About you">
        <div className="card-body">
          <WhenLoaded query={me}>
            {({ id, name, email, emailVerified, createdAt }) => (
              <dl className="facts">
                <dt>Name</dt>
                <dd>
                  <bdi>{name}</bdi>
                </dd>
                <dt>E-mail</dt>
                <dd>
                  <bdi>{email}</bdi>{' '}
                  <span className={emailVerified ? 'badge ok' : 'badge warn'}>
                    {emailVerified ? 'Verified' : 'Not verified'}
                  </span>
                </dd>
                <dt>Id</dt>
                <dd>
                  <CopyText text={id} />
                </dd>
                <dt>Here since</dt>
                <dd>
                  <TimeAgo time={createdAt} />
                </dd>
              </dl>
            )}
          </WhenLoaded>
        </div>
      </section>
      <LinkedAccounts />
      <section className="card" aria-label="This browser">
        <div className="card-head">
          <h2>This browser</h2>
        </div>
        <div className="card-body" style={{ maxWidth: 360 }}>
          <SelectField
            label="Colours"
            value={theme}
            onChange={(value) => applyTheme(value as Theme)}
            options={themeOptions}
          />
        </div>
      </section>
    </Page>
  )
}

export default AccountPage
