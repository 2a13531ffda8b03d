import { type RefObject, useEffect, useRef, useState } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { shownName } from '../../../ui/shown-text.ts'
import type { Emulator, EmulatorEvents } from './emulator.ts'
import type { OpenTerminal } from './open-terminals.ts'
import { OutputQueue } from './output-queue.ts'
import { findPty, makePty, openPtySocket, resizePty } from './pty-calls.ts'
import { type LinkState, PtyLink } from './pty-link.ts'
import { isReport } from './terminal-reports.ts'

/** For this many ms after a connection begins, all output counts as old output, because the server then sends its stored output. */
const replayMilliseconds = 500
/** How long the size of the terminal must stay unchanged before it is sent to the PTY session, in ms. */
const resizeMilliseconds = 150
const longestTitle = 80

export type TerminalView = {
  state: LinkState
  /** The title that a program has set, shortened and without control characters. */
  title: string
  /** The address of the link under the mouse pointer. */
  hovered: string | undefined
  droppedBytes: number
  /** A sentence that says why xterm.js could not be loaded. */
  failure: string | undefined
}

const first: TerminalView = {
  state: { name: 'connecting' },
  title: '',
  hovered: undefined,
  droppedBytes: 0,
  failure: undefined,
}

type TerminalProps = {
  sandbox: Sandbox
  terminal: OpenTerminal
  isRunning: boolean
  onMade: () => void
  onLink: EmulatorEvents['onLink']
  onKey: EmulatorEvents['onKey']
}

/** Draws a terminal into `element`, and connects it to its PTY session. */
export const useTerminal = (element: RefObject<HTMLDivElement | null>, props: TerminalProps) => {
  const latest = useRef(props)
  latest.current = props
  const emulator = useRef<Emulator | undefined>(undefined)
  const link = useRef<PtyLink | undefined>(undefined)
  const [view, setView] = useState(first)
  const { id } = props.terminal

  useEffect(() => {
    const change = (part: Partial<TerminalView>) => setView((before) => ({ ...before, ...part }))
    let isOver = false
    let isMade = !latest.current.terminal.isNew
    let makeFailure = ''
    let replayUntil = 0
    let resizing: ReturnType<typeof setTimeout> | undefined

    const start = async () => {
      const { openEmulator } = await import('./emulator.ts')
      if (isOver || element.current === null) return
      const screen = openEmulator(element.current, latest.current.terminal.name, {
        onInput: (data) => {
          if (performance.now() < replayUntil && typeof data === 'string' && isReport(data)) return
          pty.send(data)
        },
        onResize: (size) => {
          clearTimeout(resizing)
          if (pty.state.name !== 'connected') return
          // If the call fails, the error is ignored, because the size is sent again at the next connection.
          const send = () => void resizePty(latest.current.sandbox, id, size).catch(() => {})
          resizing = setTimeout(send, resizeMilliseconds)
        },
        onTitle: (title) => change({ title: shownName(title, longestTitle) }),
        onHover: (target) => change({ hovered: target === undefined ? undefined : shownName(target, 200) }),
        onLink: (target) => latest.current.onLink(target),
        onKey: (event) => latest.current.onKey(event),
      })
      emulator.current = screen
      const queue = new OutputQueue({ draw: screen.write, onDropped: (droppedBytes) => change({ droppedBytes }) })
      const pty = new PtyLink({
        open: async () => {
          const { sandbox, onMade } = latest.current
          if (!isMade) {
            makeFailure = ''
            await makePty(sandbox, id, screen.size).catch((error: Error) => {
              makeFailure = error.message
              throw error
            })
            isMade = true
            onMade()
          }
          return await openPtySocket(sandbox, id)
        },
        ask: async () => {
          if (!isMade) return makeFailure
          return (await findPty(latest.current.sandbox, id)) ? '' : 'gone'
        },
        onState: (state) => change({ state }),
        onBegin: () => {
          queue.clear()
          screen.reset()
          replayUntil = performance.now() + replayMilliseconds
          void resizePty(latest.current.sandbox, id, screen.size).catch(() => {})
        },
        onOutput: (data) => queue.add(data),
      })
      link.current = pty
      if (latest.current.isRunning) pty.connect()
      else pty.hold()
    }
    start().catch((error: Error) => change({ failure: `The terminal could not be loaded: ${error.message}` }))

    const online = () => latest.current.isRunning && link.current?.connect()
    addEventListener('online', online)
    return () => {
      isOver = true
      removeEventListener('online', online)
      clearTimeout(resizing)
      link.current?.close()
      emulator.current?.dispose()
      link.current = undefined
      emulator.current = undefined
    }
  }, [id, element])

  const { isRunning } = props
  useEffect(() => {
    if (isRunning) link.current?.connect()
    else link.current?.hold()
  }, [isRunning])

  return { view, emulator, connect: () => link.current?.connect() }
}
