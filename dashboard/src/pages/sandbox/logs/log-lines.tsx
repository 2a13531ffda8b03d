import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState } from 'react'
import { Button } from '../../../ui/button.tsx'
import { piecesOf } from './ansi-text.ts'
import type { LogLine } from './line-ring.ts'

const lineHeight = 20
/** Maximum distance from the end of the log, in pixels, at which the log still scrolls to new lines. */
const nearEnd = 30

const Text = ({ line }: { line: LogLine }) => (
  <>
    {piecesOf(line.text).map(({ text, className }, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no names, and are drawn anew with their line
      <span key={at} className={className || undefined}>
        {text}
      </span>
    ))}
  </>
)

/** Shows the lines of a log. Scrolls to new lines only while the last lines are in view. */
export const LogLines = ({ lines, label }: { lines: readonly LogLine[]; label: string }) => {
  const box = useRef<HTMLDivElement>(null)
  const [isAtEnd, setAtEnd] = useState(true)
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => lineHeight,
    overscan: 20,
  })
  const jump = () => {
    const element = box.current
    if (element !== null) element.scrollTop = element.scrollHeight
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines move the end
  useEffect(() => {
    if (isAtEnd) jump()
  }, [lines, isAtEnd])
  const onScroll = () => {
    const { scrollTop, clientHeight, scrollHeight } = box.current!
    setAtEnd(scrollHeight - scrollTop - clientHeight < nearEnd)
  }
  return (
    <div className="log-frame">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section ref={box} className="log-lines" tabIndex={0} aria-label={label} onScroll={onScroll}>
        <div style={{ height: virtual.getTotalSize() }} className="log-space">
          {virtual.getVirtualItems().map(({ index, start }) => {
            const line = lines[index]!
            return (
              <div
                key={line.number}
                className={line.stream === 'stderr' ? 'log-line stderr' : 'log-line'}
                style={{ transform: `translateY(${start}px)`, height: lineHeight }}
              >
                <span className="log-number" aria-hidden="true">
                  {line.number}
                </span>
                {line.stream === 'stderr' && <span className="visually-hidden">stderr: </span>}
                <Text line={line} />
              </div>
            )
          })}
        </div>
      </section>
      {!isAtEnd && (
        <Button compact kind="primary" className="log-jump" onClick={jump}>
          Jump to the end
        </Button>
      )}
    </div>
  )
}
