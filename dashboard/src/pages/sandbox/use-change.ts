import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Sandbox } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { toastError } from '../../ui/toast.tsx'

const isRecordOf = (answer: unknown, sandboxId: string): boolean => {
  const { id, env, state } = (answer ?? {}) as Partial<Sandbox>
  return id === sandboxId && env !== undefined && state !== undefined
}

/** Calls that change a sandbox. The server answers most of them with the sandbox's new record, which is shown at once. */
export const useChange = (sandboxId: string) => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const [isBusy, setBusy] = useState(false)

  /** Waits for the call. Throws what the server says against it, for forms and dialogs that show it. */
  const change = async <T>(call: Promise<T>): Promise<T> => {
    setBusy(true)
    try {
      const answer = await call
      if (isRecordOf(answer, sandboxId)) queries.setQueryData([organizationId, 'sandbox', sandboxId], answer)
      return answer
    } finally {
      setBusy(false)
      void queries.invalidateQueries({ queryKey: [organizationId, 'sandbox', sandboxId] })
    }
  }

  /** Like `change`, but shows the error as a message. For buttons. */
  const act = async (what: string, call: Promise<unknown>): Promise<void> => {
    try {
      await change(call)
    } catch (error) {
      toastError(`${what} failed`, error)
    }
  }
  return { isBusy, change, act }
}
