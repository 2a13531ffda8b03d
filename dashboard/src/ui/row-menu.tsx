import type { ReactNode } from 'react'
import { IconButton } from './button.tsx'
import { Icon } from './icons.tsx'
import { Menu } from './menu.tsx'
import { shownText } from './shown-text.ts'

/** The menu at the end of a row. `name` is the name of the thing in the row, for screen readers. */
export const RowMenu = ({ name, children }: { name: string; children: ReactNode }) => (
  <Menu
    trigger={
      <IconButton label={`Actions for ${shownText(name)}`} kind="quiet" compact>
        <Icon name="more" />
      </IconButton>
    }
  >
    {children}
  </Menu>
)
