type Order = 'asc' | 'desc'
type SortHeaderProps = {
  name: string
  /** How the rows are ordered by this column. Undefined: they are ordered by another one. */
  order: Order | undefined
  /** Hears the order that a click asks for. */
  onSort: (order: Order) => void
  className?: string | undefined
}

/** The head of a column by which rows can be ordered. A second click turns the order round. */
export const SortHeader = ({ name, order, onSort, className }: SortHeaderProps) => (
  <th className={className} aria-sort={order === undefined ? undefined : order === 'asc' ? 'ascending' : 'descending'}>
    <button type="button" className="sort" onClick={() => onSort(order === 'desc' ? 'asc' : 'desc')}>
      {name} {order !== undefined && <span aria-hidden="true">{order === 'asc' ? '↑' : '↓'}</span>}
    </button>
  </th>
)
