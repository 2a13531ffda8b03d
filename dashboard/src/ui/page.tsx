import { type ReactNode, useEffect } from 'react'
import { ErrorNotice } from './error-notice.tsx'

type PageProps = { title: string; description?: ReactNode; actions?: ReactNode; children: ReactNode }

/** Draws a page with its heading, its buttons and its content, and sets the title of the browser's tab. */
export const Page = ({ title, description, actions, children }: PageProps) => {
  useEffect(() => {
    document.title = `${title} · Alcove`
  }, [title])
  return (
    <div className="page">
      <header className="page-head">
        <div>
          <h1 className="wrap-anywhere">{title}</h1>
          {description !== undefined && <div className="muted">{description}</div>}
        </div>
        {actions !== undefined && <div className="row">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** Shown instead of an empty list. Says that the list is empty and what the reader can do next. */
export const Empty = ({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) => (
  <div className="empty">
    <h2>{title}</h2>
    {children !== undefined && <p>{children}</p>}
    {action}
  </div>
)

type Loaded<T> = { data: T | undefined; error: unknown; isPending: boolean; refetch: () => unknown }

/**
 * Draws the data of a query. While the query loads or after it has failed, draws a notice. After a failed refresh, draws the data
 * and the notice.
 */
export const WhenLoaded = <T,>({ query, children }: { query: Loaded<T>; children: (data: T) => ReactNode }) => (
  <>
    {query.error != null && <ErrorNotice error={query.error} retry={() => void query.refetch()} />}
    {query.data !== undefined ? children(query.data) : query.isPending && <div className="waiting">Loading…</div>}
  </>
)
