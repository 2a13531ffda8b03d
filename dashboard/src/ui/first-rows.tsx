import { type ReactNode, useState } from 'react'
import { Button } from './button.tsx'

const step = 100

/** Draws only the first rows of a long list that was fetched completely. A button shows more rows. */
export const FirstRows = <T,>({
  rows,
  children,
}: {
  rows: readonly T[]
  children: (shown: readonly T[]) => ReactNode
}) => {
  const [count, setCount] = useState(step)
  return (
    <>
      {children(rows.slice(0, count))}
      {rows.length > count && (
        <div className="row" style={{ padding: 12 }}>
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
