import { answerOf } from '../../../api/client.ts'
import { ApiProblem } from '../../../api/problem.ts'
import { openToolboxSocket, type ToolboxOwner, toolboxOf, unnoticed } from '../../../api/toolbox-client.ts'

type Size = { cols: number; rows: number }

const pathOf = (sessionId: string) => ({ params: { path: { sessionId } } })

/**
 * Makes a PTY session. Succeeds if the session exists already: an earlier call may have made it, although its answer was
 * lost.
 */
export const makePty = async (owner: ToolboxOwner, id: string, size: Size): Promise<void> => {
  try {
    await answerOf(toolboxOf(owner).POST('/process/pty', { body: { id, ...size } }))
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 409 && (await findPty(owner, id))) return
    throw error
  }
}

/** Whether the PTY session exists. The call does not count as activity, so it does not keep an idle sandbox running. */
export const findPty = async (owner: ToolboxOwner, id: string): Promise<boolean> => {
  try {
    const call = { ...pathOf(id), headers: unnoticed }
    await answerOf(toolboxOf(owner).GET('/process/pty/{sessionId}', call))
    return true
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return false
    throw error
  }
}

export const listPtys = async (owner: ToolboxOwner) =>
  (await answerOf(toolboxOf(owner).GET('/process/pty', { headers: unnoticed }))).sessions

/** Ends the shell of a PTY session and all processes that the shell started. Succeeds if the session has ended already. */
export const endPty = async (owner: ToolboxOwner, id: string): Promise<void> => {
  try {
    await answerOf(toolboxOf(owner).DELETE('/process/pty/{sessionId}', pathOf(id)))
  } catch (error) {
    if (!(error instanceof ApiProblem && error.status === 404)) throw error
  }
}

export const resizePty = async (owner: ToolboxOwner, id: string, size: Size): Promise<void> => {
  const call = { ...pathOf(id), body: size, headers: unnoticed }
  await answerOf(toolboxOf(owner).POST('/process/pty/{sessionId}/resize', call))
}

export const openPtySocket = (owner: ToolboxOwner, id: string): Promise<WebSocket> =>
  openToolboxSocket(owner, `/process/pty/${encodeURIComponent(id)}/connect`, ['X-Daytona-Pty-Exit-Control'])
