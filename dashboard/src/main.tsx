import { CSPProvider } from '@base-ui/react/csp-provider'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiProblem } from './api/problem.ts'
import { cspNonce } from './csp-nonce.ts'
import { applyTheme, currentTheme } from './layout/theme.ts'
import { router } from './router.tsx'
import { SessionGate } from './session/gate.tsx'
import { session } from './session/session.ts'
import { Toasts } from './ui/toast.tsx'
import './ui/tokens.css'
import './ui/ui.css'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      // The server would refuse a refused call (4xx) again. Other failures are retried up to three times.
      retry: (count, error) => count < 3 && !(error instanceof ApiProblem && error.status >= 400 && error.status < 500),
    },
  },
})

let wasExpired = false
session.subscribe(() => {
  const { name } = session.state
  if (name === 'signed-in' && wasExpired) void queries.invalidateQueries()
  wasExpired = name === 'expired'
})

applyTheme(currentTheme())
void session.open()

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <CSPProvider {...(cspNonce !== undefined && { nonce: cspNonce })}>
      <QueryClientProvider client={queries}>
        <SessionGate>
          <RouterProvider router={router} />
        </SessionGate>
        <Toasts />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
)
