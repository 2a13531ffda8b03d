import { Button } from './button.tsx'

type PagerProps = { page: number; of: number; onPage: (page: number) => void }

/** The way to the other pages of a list. Draws nothing if there is only one. */
export const Pager = ({ page, of, onPage }: PagerProps) => {
  if (of <= 1) return null
  return (
    <nav className="list-end" aria-label="Pages of the list">
      <Button compact disabled={page <= 1} onClick={() => onPage(page - 1)}>
        Previous
      </Button>
      <span className="muted">
        Page {page} of {of}
      </span>
      <Button compact disabled={page >= of} onClick={() => onPage(page + 1)}>
        Next
      </Button>
    </nav>
  )
}
