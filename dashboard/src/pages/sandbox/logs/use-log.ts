import { useEffect, useRef, useState } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { LineRing, type LogLine } from './line-ring.ts'
import { followLog, type LogState } from './log-link.ts'
import { askForLog, keyOf, type LogSource, openLog } from './log-source.ts'
import { StreamSplitter } from './split-streams.ts'

/** Minimum time between two redraws, in ms. */
const drawMilliseconds = 150

export type LogView = { lines: LogLine[]; dropped: number; state: LogState }

/** Follows a log while the component is shown. */
export const useLog = (sandbox: Sandbox, source: LogSource): LogView => {
  const [view, setView] = useState<LogView>({ lines: [], dropped: 0, state: { name: 'connecting' } })
  const owner = useRef(sandbox)
  owner.current = sandbox
  const place = useRef(source)
  place.current = source
  const isRunning = sandbox.state === 'started'
  const key = keyOf(source)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the source
  useEffect(() => {
    if (!isRunning) return
    const ring = new LineRing()
    let splitter = new StreamSplitter((stream, text) => ring.push(stream, text))
    let state: LogState = { name: 'connecting' }
    let timer: ReturnType<typeof setTimeout> | undefined
    const draw = () => {
      timer = undefined
      setView({ lines: ring.lines(), dropped: ring.dropped, state })
    }
    const drawSoon = () => {
      timer ??= setTimeout(draw, drawMilliseconds)
    }
    const stop = followLog({
      open: () => openLog(owner.current, place.current),
      ask: () => askForLog(owner.current, place.current),
      onState: (now) => {
        state = now
        drawSoon()
      },
      onBegin: () => {
        ring.clear()
        splitter = new StreamSplitter((stream, text) => ring.push(stream, text))
      },
      onData: (data) => {
        splitter.push(data)
        drawSoon()
      },
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [key, isRunning])
  return view
}
