import { Fragment } from 'react'
import { CopyText } from '../../../ui/copy.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { crumbsOf } from './paths.ts'

/** Shows the path of a directory or file. Each part of the path is a button that opens that directory. */
export const Crumbs = ({ path, onOpen }: { path: string; onOpen: (path: string) => void }) => {
  const crumbs = crumbsOf(path)
  return (
    <nav className="crumbs" aria-label="Path">
      {crumbs.map((crumb, at) => (
        <Fragment key={crumb.path}>
          {at > 1 && <span aria-hidden="true">/</span>}
          <button
            type="button"
            aria-current={at === crumbs.length - 1 ? 'page' : undefined}
            onClick={() => onOpen(crumb.path)}
          >
            {shownName(crumb.name, 60)}
          </button>
        </Fragment>
      ))}
      <CopyText text={path} shown="Copy path" />
    </nav>
  )
}
