import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { useMembers, useStanding } from '../../session/people.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { toast } from '../../ui/toast.tsx'
import { CreateDialog } from './create-dialog.tsx'
import { KeyTable } from './key-table.tsx'

export type Key = AnswerTo<'/api-keys', 'get'>[number]

/** The page has a search field if there are at least this many keys. */
const findable = 8

const KeysPage = () => {
  const organizationId = useOrganizationId()
  const queries = useQueryClient()
  const standing = useStanding()
  const members = useMembers()
  const [isCreating, setCreating] = useState(false)
  const [deleting, setDeleting] = useState<Key>()
  const [text, setText] = useState('')
  const query = useQuery({
    queryKey: [organizationId, 'keys'],
    queryFn: () => answerOf(control.GET('/api-keys')),
  })
  const emails = useMemo(
    () => new Map(members.data?.map(({ userId, email, name }) => [userId, email || name])),
    [members.data],
  )
  const changed = () => void queries.invalidateQueries({ queryKey: [organizationId, 'keys'] })
  const remove = async ({ userId, name }: Key) => {
    await answerOf(control.DELETE('/api-keys/{userId}/{name}', { params: { path: { userId, name } } } as never))
    changed()
    toast(`The key ${name} is deleted`)
  }
  const fits = ({ name, userId }: Key) => {
    const wanted = text.trim().toLowerCase()
    return name.toLowerCase().includes(wanted) || (emails.get(userId)?.toLowerCase().includes(wanted) ?? false)
  }
  const createButton = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      Create a key
    </Button>
  )
  return (
    <Page
      title="API keys"
      description={
        standing?.isOwner
          ? 'Programs use keys to work with this organization. You see the keys of all members.'
          : 'Programs use keys to work with this organization. You see your own keys.'
      }
      actions={createButton}
    >
      <WhenLoaded query={query}>
        {(keys) =>
          keys.length === 0 ? (
            <div className="card">
              <Empty title="There are no keys yet" action={createButton}>
                Create a key, and give the key to a program. The program can then create sandboxes in this organization.
              </Empty>
            </div>
          ) : (
            <>
              {keys.length > findable && (
                <input
                  className="input"
                  type="search"
                  style={{ maxWidth: 320 }}
                  aria-label="Find a key"
                  placeholder={standing?.isOwner ? 'Name or owner of a key' : 'Name of a key'}
                  value={text}
                  onChange={(event) => setText(event.target.value)}
                />
              )}
              <KeyTable
                keys={keys.filter(fits)}
                emails={emails}
                showsOwner={standing?.isOwner ?? false}
                onDelete={setDeleting}
              />
            </>
          )
        }
      </WhenLoaded>
      {isCreating && <CreateDialog standing={standing} onClose={() => setCreating(false)} onCreated={changed} />}
      <Confirm
        title="Delete this key?"
        verb="Delete the key"
        isOpen={deleting !== undefined}
        onClose={() => setDeleting(undefined)}
        onConfirm={() => remove(deleting!)}
      >
        <p className="wrap-anywhere">
          Programs that use <strong>{deleting?.name}</strong>
          {deleting !== undefined && deleting.userId !== standing?.userId && (
            <> of {emails.get(deleting.userId) ?? 'a former member'}</>
          )}{' '}
          are refused from now on. Keys that were made with this key are deleted too.
        </p>
      </Confirm>
    </Page>
  )
}

export default KeysPage
