import { answerOf } from '../../../api/client.ts'
import { openToolboxSocket, type ToolboxOwner, toolboxOf, unnoticed } from '../../../api/toolbox-client.ts'

/** The source of a log: one command of a session, or the entrypoint. */
export type LogSource = { sessionId: string; commandId: string } | 'entrypoint'

export const keyOf = (source: LogSource): string =>
  source === 'entrypoint' ? source : `${source.sessionId}/${source.commandId}`

const pathOf = (source: LogSource): string =>
  source === 'entrypoint'
    ? '/process/session/entrypoint/logs'
    : `/process/session/${encodeURIComponent(source.sessionId)}/command/${encodeURIComponent(source.commandId)}/logs`

export const openLog = (owner: ToolboxOwner, source: LogSource): Promise<WebSocket> =>
  openToolboxSocket(owner, `${pathOf(source)}?follow=true`)

/**
 * Asks the server for the command that writes the log. If the command does not exist, throws an error with the server's message.
 */
export const askForLog = (owner: ToolboxOwner, source: LogSource): Promise<unknown> =>
  source === 'entrypoint'
    ? answerOf(toolboxOf(owner).GET('/process/session/entrypoint', { headers: unnoticed }))
    : answerOf(
        toolboxOf(owner).GET('/process/session/{sessionId}/command/{commandId}', {
          params: { path: source },
          headers: unnoticed,
        }),
      )

/** Reads the whole stored log. The server keeps at most 16 MiB of a log. */
export const readLog = async (owner: ToolboxOwner, source: LogSource): Promise<string> => {
  const { output } =
    source === 'entrypoint'
      ? await answerOf(toolboxOf(owner).GET('/process/session/entrypoint/logs', { headers: unnoticed }))
      : await answerOf(
          toolboxOf(owner).GET('/process/session/{sessionId}/command/{commandId}/logs', {
            params: { path: source },
            headers: unnoticed,
          }),
        )
  return output
}

/** Offers a text to the user as a download. */
export const saveText = (text: string, name: string): void => {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
