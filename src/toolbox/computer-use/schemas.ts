import Type from 'typebox'
import { DateTime, optional, PathText } from '#src/http/shapes.ts'

const Text = Type.String()
const Whole = Type.Integer()
const Flag = Type.Boolean()

/** A position on the screen, in pixels. X11 has no larger coordinates. */
const At = Type.Integer({ minimum: 0, maximum: 32_767 })
const Button = optional(Type.Enum(['left', 'right', 'middle']))

export const Point = Type.Object({ x: Whole, y: Whole })
export const Empty = Type.Object({})

const ProcessStatus = Type.Object({
  running: Flag,
  priority: Whole,
  autoRestart: Flag,
  pid: Type.Optional(Whole),
})
export const ProcessStatuses = Type.Record(Text, ProcessStatus)
export type ProcessStatuses = Type.Static<typeof ProcessStatuses>
export const Started = Type.Object({ message: Text, status: ProcessStatuses })
export const Status = Type.Object({ status: Type.Enum(['active', 'partial', 'inactive']) })

export const ProcessParams = Type.Object({ processName: PathText })
export const ProcessRunning = Type.Object({ processName: Text, running: Flag })
export const ProcessLogs = Type.Object({ processName: Text, logs: Text })
export const ProcessErrors = Type.Object({ processName: Text, errors: Text })
export const ProcessRestarted = Type.Object({ processName: Text, message: Text })

export const MoveRequest = Type.Object({ x: At, y: At })
export const ClickRequest = Type.Object({ x: At, y: At, button: Button, double: optional(Flag) })
export const DragRequest = Type.Object({ startX: At, startY: At, endX: At, endY: At, button: Button })
export const ScrollRequest = Type.Object({
  x: At,
  y: At,
  direction: Type.Enum(['up', 'down']),
  amount: optional(Type.Integer({ minimum: 1, maximum: 100 })),
})
export const Scrolled = Type.Object({ success: Flag })

export const TypeRequest = Type.Object({
  text: Type.String({ maxLength: 10_000 }),
  /** Pause between two characters, in milliseconds. */
  delay: optional(Type.Integer({ minimum: 0, maximum: 1000 })),
})
const KeyName = Type.String({ minLength: 1, maxLength: 40 })
export const KeyRequest = Type.Object({ key: KeyName, modifiers: optional(Type.Array(KeyName, { maxItems: 8 })) })
export const HotkeyRequest = Type.Object({ keys: Type.String({ minLength: 1, maxLength: 100 }) })

const showCursor = Type.Optional(Flag)
const region = { x: At, y: At, width: At, height: At }
const compression = {
  format: Type.Optional(Type.Enum(['png', 'jpeg', 'jpg', 'webp'])),
  quality: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  scale: Type.Optional(Type.Number({ minimum: 0.1, maximum: 1 })),
}
export const ScreenshotQuery = Type.Object({ showCursor })
export const RegionQuery = Type.Object({ ...region, showCursor })
export const CompressedQuery = Type.Object({ showCursor, ...compression })
export const CompressedRegionQuery = Type.Object({ ...region, showCursor, ...compression })
export type Picture = Partial<Type.Static<typeof CompressedRegionQuery>>
export const Screenshot = Type.Object({ screenshot: Text, cursorPosition: Point, sizeBytes: Whole })

const place = { x: Whole, y: Whole, width: Whole, height: Whole }
export const Displays = Type.Object({ displays: Type.Array(Type.Object({ id: Whole, ...place, isActive: Flag })) })
export const Windows = Type.Object({
  windows: Type.Array(Type.Object({ id: Whole, title: Text, ...place, isActive: Flag })),
})

export const RecordingRequest = Type.Object({ label: optional(Type.String({ maxLength: 200 })) })
export const StopRecordingRequest = Type.Object({ id: PathText })
export const RecordingParams = Type.Object({ id: PathText })
export const Recording = Type.Object({
  id: Text,
  fileName: Text,
  filePath: Text,
  status: Type.Enum(['recording', 'completed', 'failed']),
  startTime: DateTime,
  endTime: Type.Optional(DateTime),
  durationSeconds: Type.Optional(Type.Number()),
  sizeBytes: Type.Optional(Whole),
})
export const Recordings = Type.Object({ recordings: Type.Array(Recording) })

const scopes = ['focused', 'pid', 'all'] as const
const Pid = Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })
export const TreeQuery = Type.Object({
  scope: Type.Optional(Type.Enum([...scopes])),
  pid: Type.Optional(Pid),
  /** Levels of the accessibility tree below its root. 0: only the root. -1: as many as the API allows. */
  maxDepth: Type.Optional(Type.Integer({ minimum: -1, maximum: 1000 })),
})
const NodeText = Type.String({ maxLength: 1000 })
export const FindRequest = Type.Object({
  scope: optional(Type.Enum([...scopes])),
  pid: optional(Pid),
  role: optional(NodeText),
  name: optional(NodeText),
  nameMatch: optional(Type.Enum(['exact', 'substring', 'regex'])),
  states: optional(Type.Array(Type.String({ maxLength: 100 }), { maxItems: 50 })),
  limit: optional(Type.Integer({ minimum: 1, maximum: 500 })),
})
export type FindRequest = Type.Static<typeof FindRequest>
const NodeId = Type.String({ minLength: 1, maxLength: 1000 })
export const NodeRequest = Type.Object({ id: NodeId })
export const InvokeRequest = Type.Object({ id: NodeId, action: optional(NodeText) })
export const ValueRequest = Type.Object({ id: NodeId, value: Type.String({ maxLength: 100_000 }) })

const node = {
  id: Text,
  name: Text,
  role: Text,
  description: Text,
  states: Type.Array(Text),
  actions: Type.Array(Text),
  bounds: Type.Optional(Type.Object(place)),
}
const Node = Type.Object(node)
/** The nodes of an accessibility tree, parents first. `parent`: index of the parent node in this list. */
export const TreeRows = Type.Object({
  rows: Type.Array(Type.Object({ ...node, parent: Type.Union([Whole, Type.Null()]) }), { maxItems: 2000 }),
  truncated: Flag,
})
export type TreeRows = Type.Static<typeof TreeRows>
export type TreeNode = Type.Static<typeof Node> & { children?: TreeNode[] }
/** Each of the `children` is a node with these fields and `children` of its own. */
const Root = Type.Object({ ...node, children: Type.Optional(Type.Array(Type.Unknown())) })
export const Tree = Type.Object({ root: Type.Optional(Root), truncated: Flag })
export const Nodes = Type.Object({ matches: Type.Array(Node), truncated: Flag })
