import { type DragEvent, type ReactNode, useRef, useState } from 'react'
import { toastError } from '../../../ui/toast.tsx'
import { type Dropped, droppedFiles } from './dropped-files.ts'

/** A part of the page on which files and directories can be dropped. */
export const DropZone = ({ onDrop, children }: { onDrop: (files: Dropped[]) => void; children: ReactNode }) => {
  const [isOver, setOver] = useState(false)
  // `dragenter` events minus `dragleave` events. Elements inside the zone send both kinds of events too, so the pointer is outside
  // only at 0.
  const depth = useRef(0)
  const move = (step: number) => {
    depth.current = Math.max(0, depth.current + step)
    setOver(depth.current > 0)
  }
  const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer.types.includes('Files')
  return (
    <section
      aria-label="Directory"
      className={isOver ? 'drop-zone over' : 'drop-zone'}
      onDragEnter={(event) => hasFiles(event) && move(1)}
      onDragLeave={(event) => hasFiles(event) && move(-1)}
      onDragOver={(event) => hasFiles(event) && event.preventDefault()}
      onDrop={(event) => {
        if (!hasFiles(event)) return
        event.preventDefault()
        move(-depth.current)
        droppedFiles(event.dataTransfer).then(onDrop, (error) => toastError('The files cannot be read', error))
      }}
    >
      {children}
    </section>
  )
}
