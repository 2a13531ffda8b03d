import { Menu as Base } from '@base-ui/react/menu'
import type { ReactElement, ReactNode } from 'react'

/** A menu that `trigger` opens. Its children are {@link MenuItem}s and {@link MenuLine}s. */
export const Menu = ({ trigger, children }: { trigger: ReactElement; children: ReactNode }) => (
  <Base.Root>
    <Base.Trigger render={trigger} />
    <Base.Portal>
      <Base.Positioner sideOffset={4} align="end" style={{ zIndex: 50 }}>
        <Base.Popup className="menu">{children}</Base.Popup>
      </Base.Positioner>
    </Base.Portal>
  </Base.Root>
)

type ItemProps = {
  children: ReactNode
  onSelect: () => void
  isDanger?: boolean | undefined
  isDisabled?: boolean | undefined
}

export const MenuItem = ({ children, onSelect, isDanger, isDisabled = false }: ItemProps) => (
  <Base.Item className={isDanger ? 'menu-item danger' : 'menu-item'} onClick={onSelect} disabled={isDisabled}>
    {children}
  </Base.Item>
)

export const MenuLine = () => <Base.Separator className="menu-line" />
