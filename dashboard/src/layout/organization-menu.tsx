import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { answerOf, control } from '../api/client.ts'
import { session } from '../session/session.ts'
import { useOrganizationId } from '../session/use-session.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icons.tsx'
import { Menu, MenuItem, MenuLine } from '../ui/menu.tsx'
import { NewOrganizationDialog } from './new-organization.tsx'

export const useOrganizations = () =>
  useQuery({ queryKey: ['organizations'], queryFn: () => answerOf(control.GET('/organizations')) })

/** Shows the name of this browser tab's organization, with a menu that switches to another organization or makes a new one. */
export const OrganizationMenu = () => {
  const organizationId = useOrganizationId()
  const { data = [] } = useOrganizations()
  const [isMaking, setMaking] = useState(false)
  return (
    <>
      <Menu
        trigger={
          <Button>
            <span className="visually-hidden">Organization </span>
            <span className="cut">{data.find(({ id }) => id === organizationId)?.name ?? 'Organization'}</span>
            <Icon name="down" />
          </Button>
        }
      >
        {data.map(({ id, name }) => (
          <MenuItem
            key={id}
            onSelect={() => {
              session.organizationId = id
            }}
          >
            <span className="cut">{name}</span>
            {id === organizationId && <Icon name="check" />}
          </MenuItem>
        ))}
        <MenuLine />
        <MenuItem onSelect={() => setMaking(true)}>New organization…</MenuItem>
      </Menu>
      {isMaking && <NewOrganizationDialog onClose={() => setMaking(false)} />}
    </>
  )
}
