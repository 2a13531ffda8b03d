import { Button } from './button.tsx'

type PagerProps = { page: number; of: number; onPage: (page: number) => void }

/** Buttons for the previous and the next page of a list. Draws nothing if the list has only one page. */
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
