type Order = 'asc' | 'desc'
type SortHeaderProps = {
  name: string
  /** The order of the rows if they are sorted by this column. Undefined if they are sorted by another column. */
  order: Order | undefined
  /** Called with the new order when the reader clicks. */
  onSort: (order: Order) => void
  className?: string | undefined
}

/** The header of a table column. A click sorts the rows by this column; a second click reverses the order. */
export const SortHeader = ({ name, order, onSort, className }: SortHeaderProps) => (
  <th className={className} aria-sort={order === undefined ? undefined : order === 'asc' ? 'ascending' : 'descending'}>
    <button type="button" className="sort" onClick={() => onSort(order === 'desc' ? 'asc' : 'desc')}>
      {name} {order !== undefined && <span aria-hidden="true">{order === 'asc' ? '↑' : '↓'}</span>}
    </button>
  </th>
)
