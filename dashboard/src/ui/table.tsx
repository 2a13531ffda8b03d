import { type ReactElement, type ReactNode, useState } from 'react'
import { Button } from './button.tsx'

/** Number of rows that are drawn at first, and that each click on "Show 100 more" adds. */
const step = 100

/** Returns the header of a column that a narrow window hides. The cells of the column need the class `wide-only` too. */
export const wide = (title: string): ReactElement => (
  <th key={title} className="wide-only">
    {title}
  </th>
)

/** The query of a list that the server returns in pieces. */
type Pages = { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }

type TableProps<T> = {
  /** Name of the table, for screen readers. */
  label: string
  /** The columns' titles, or their header cells. The table adds a column for the buttons of each row. */
  columns: readonly (string | ReactElement | false)[]
  rows: readonly T[]
  /** Present if the server returns the list in pieces. All loaded rows are drawn, and a button loads more. */
  pages?: Pages
  /** Draws one row. */
  children: (row: T) => ReactNode
}

/** A table inside a card. It draws only the first rows of a long list, and a button draws more. */
export const Table = <T,>({ label, columns, rows, pages, children }: TableProps<T>) => {
  const [count, setCount] = useState(step)
  const shown = pages === undefined ? rows.slice(0, count) : rows
  return (
    <>
      <div className="table-scroll">
        <table className="table" aria-label={label}>
          <thead>
            <tr>
              {columns.map((column) => (typeof column === 'string' ? <th key={column}>{column}</th> : column))}
              <th>
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>{shown.map(children)}</tbody>
        </table>
      </div>
      {pages?.hasNextPage && (
        <div className="list-end">
          <Button compact disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Load more
          </Button>
        </div>
      )}
      {rows.length > shown.length && (
        <div className="list-end">
          <Button compact onClick={() => setCount(count + step)}>
            Show {Math.min(step, rows.length - count)} more
          </Button>
          <span className="muted small">
            {count} of {rows.length} are shown
          </span>
        </div>
      )}
    </>
  )
}

/** The last cell of a row that has buttons instead of a menu. */
export const RowButtons = ({ children }: { children: ReactNode }) => (
  <td>
    <div className="row row-buttons">{children}</div>
  </td>
)
