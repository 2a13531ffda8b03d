import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Sandbox } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { toastError } from '../../ui/toast.tsx'

const isRecordOf = (answer: unknown, sandboxId: string): boolean => {
  const { id, env, state } = (answer ?? {}) as Partial<Sandbox>
  return id === sandboxId && env !== undefined && state !== undefined
}

/**
 * Makes calls that change a sandbox. If the server answers with the sandbox's new record, the page shows this record immediately.
 */
export const useChange = (sandboxId: string) => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const [isBusy, setBusy] = useState(false)

  /** Waits for a call. If the call fails, throws the call's error, which the form or dialog shows. */
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

  /** For buttons: waits for a call. If the call fails, shows a short message that begins with `what`. */
  const act = async (what: string, call: Promise<unknown>): Promise<void> => {
    try {
      await change(call)
    } catch (error) {
      toastError(`${what} failed`, error)
    }
  }
  return { isBusy, change, act }
}
