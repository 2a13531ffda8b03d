import { useEffect, useState } from 'react'
import { apiUrl, fetchSignedIn } from '../../api/client.ts'
import { problemOf } from '../../api/problem.ts'
import { LogLines } from './log-lines.ts'

export type LogState =
  | { name: 'following' }
  | { name: 'ended' }
  | { name: 'broken'; error: unknown; retrySeconds?: number | undefined }

/** How long the page collects new pieces of a log before it draws them, in ms. */
const gatherMilliseconds = 200
const longestPauseSeconds = 30

/** Reads a log to its end. `onPiece` is called with each piece of text. */
const readLog = async (url: string, signal: AbortSignal, onPiece: (text: string) => void): Promise<void> => {
  const response = await fetchSignedIn(new Request(url, { signal }))
  if (!response.ok) throw problemOf(response, await response.json().catch(() => undefined))
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) onPiece(piece.value)
}

/**
 * Follows a build log. `isMoving`: the build still runs. If the connection breaks meanwhile, reads the log anew after a wait, which
 * is longer after each failure.
 */
export const useBuildLog = (path: string, isMoving: boolean) => {
  const [log, setLog] = useState<{ text: string; dropped: number }>({ text: '', dropped: 0 })
  const [state, setState] = useState<LogState>({ name: 'following' })
  const [attempt, setAttempt] = useState(0)

  // biome-ignore lint/correctness/useExhaustiveDependencies: each new attempt must read the log again
  useEffect(() => {
    const controller = new AbortController()
    const lines = new LogLines()
    let timer: ReturnType<typeof setTimeout> | undefined
    const draw = () => {
      timer = undefined
      setLog({ text: lines.text, dropped: lines.dropped })
    }
    setState({ name: 'following' })
    readLog(`${apiUrl}${path}?follow=true`, controller.signal, (text) => {
      lines.add(text)
      timer ??= setTimeout(draw, gatherMilliseconds)
    }).then(
      () => {
        if (controller.signal.aborted) return
        clearTimeout(timer)
        draw()
        setState({ name: 'ended' })
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setState({ name: 'broken', error })
      },
    )
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [path, attempt])

  const isOver = state.name !== 'following'
  useEffect(() => {
    // The log has ended, but the build still runs: the server has begun the log anew, or the connection broke. Read the log again
    // after a wait.
    if (!isOver || !isMoving) return
    const seconds = Math.min(3 * 2 ** Math.min(attempt, 10), longestPauseSeconds)
    const timer = setTimeout(() => setAttempt(attempt + 1), seconds * 1000)
    return () => clearTimeout(timer)
  }, [isOver, isMoving, attempt])

  return { ...log, state, retry: () => setAttempt(attempt + 1) }
}
