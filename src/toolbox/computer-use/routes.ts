import type { FastifyRequest } from 'fastify'
import Type, { type Static, type TSchema } from 'typebox'
import { Problem } from '#src/problems.ts'
import { sdkSourceHeader, sdkVersionHeader } from '#src/wire/access.ts'
import { download } from '../files/download.ts'
import { route } from '../sandbox.ts'
import { ask } from './ask.ts'
import { chordOf, readHotkey } from './keys.ts'
import {
  ClickRequest,
  CompressedQuery,
  CompressedRegionQuery,
  Displays,
  DragRequest,
  Empty,
  FindRequest,
  HotkeyRequest,
  InvokeRequest,
  KeyRequest,
  MoveRequest,
  NodeRequest,
  Nodes,
  type Picture,
  Point,
  ProcessErrors,
  ProcessLogs,
  ProcessParams,
  ProcessRestarted,
  ProcessRunning,
  ProcessStatuses,
  Recording,
  RecordingParams,
  RecordingRequest,
  Recordings,
  RegionQuery,
  Screenshot,
  ScreenshotQuery,
  Scrolled,
  ScrollRequest,
  Started,
  Status,
  StopRecordingRequest,
  Tree,
  TreeQuery,
  TreeRows,
  TypeRequest,
  ValueRequest,
  Windows,
} from './schemas.ts'
import { treeOf } from './tree.ts'

const Nothing = Type.Null()
const Text = Type.String()
const Flag = Type.Boolean()

/** Time limit in seconds of calls that start or end the desktop. Such calls wait for several programs. */
const longSeconds = 90
/** Maximum total time of the pauses between the characters of a text, in seconds. */
const typingSeconds = 60

const buttons = { left: 1, middle: 2, right: 3 }
const buttonOf = (name: keyof typeof buttons | null | undefined) => buttons[name ?? 'left']
const wheel = { up: 4, down: 5 }

const post = { method: 'POST', needs: 'sandbox' } as const
const get = { method: 'GET', needs: 'sandbox' } as const

const statusOf = (all: Record<string, { running: boolean }>) => {
  const each = Object.values(all).map(({ running }) => running)
  if (!each.includes(true)) return { status: 'inactive' }
  return { status: each.includes(false) ? 'partial' : 'active' }
}

const statusCall = { of: 'desktop', call: 'status', answer: ProcessStatuses } as const

/**
 * Corrects the region of a screenshot: version 0.216.0 of the TypeScript SDK sends the four numbers of `takeRegion` in the
 * reverse order.
 */
const asMeant = (query: Static<typeof RegionQuery>, { headers }: FastifyRequest) => {
  const isReversed = headers[sdkSourceHeader] === 'sdk-typescript' && headers[sdkVersionHeader] === '0.216.0'
  if (!isReversed) return query
  const { x: height, y: width, width: y, height: x, ...more } = query
  return { ...more, x, y, width, height }
}

const pictureCall = ({ showCursor, x, y, width, height, format = 'png', quality = 75, scale = 1 }: Picture) => {
  if (width === 0 || height === 0) throw new Problem('bad_request', 'width and height must be at least 1')
  const region = width === undefined ? null : [x, y, width, height]
  const given = { cursor: showCursor ?? false, region, format: format === 'jpg' ? 'jpeg' : format, quality, scale }
  return { of: 'screen', call: 'screenshot', given, answer: Screenshot } as const
}

const processNames: readonly string[] = ['xvfb', 'dbus', 'at-spi', 'openbox', 'x11vnc', 'novnc']

const processCall = <Answer extends TSchema>(call: string, name: string, answer: Answer, seconds = 30) => {
  if (!processNames.includes(name)) {
    throw new Problem('not_found', `There is no such process. There are: ${processNames.join(', ')}.`)
  }
  return { of: 'desktop', call, given: { name }, answer, seconds } as const
}

/** The control characters of ASCII that a text to type must not contain: all except tabs and line ends. */
const untypable = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/

const typeCall = ({ text: given, delay }: Static<typeof TypeRequest>) => {
  const text = given.replace(/\r\n?/g, '\n')
  if (untypable.test(text) || !text.isWellFormed()) {
    throw new Problem('bad_request', 'text must not hold control characters; press keys for them')
  }
  const pause = delay ?? 4
  if (text.length * pause > typingSeconds * 1000) {
    throw new Problem('bad_request', `Typing this would take more than ${typingSeconds} s: give less text or delay.`)
  }
  const asked = { text, delay: pause, seconds: typingSeconds + 15 }
  return { of: 'screen', call: 'type_text', given: asked, answer: Nothing, seconds: typingSeconds + 30 } as const
}

const scopeOf = (scope: FindRequest['scope'], pid: FindRequest['pid']) => {
  if (scope === 'pid' && (pid ?? undefined) === undefined) throw new Problem('bad_request', 'scope pid needs a pid')
  return { scope: scope ?? 'focused', pid: pid ?? null }
}

const desktopRoutes = [
  route({
    ...post,
    path: '/computeruse/start',
    summary: 'Starts the desktop: display, window manager, VNC server, and a web page for VNC on port 6080.',
    replies: { 200: Started },
    run: async (call) => {
      const started = { of: 'desktop', call: 'start', answer: ProcessStatuses, seconds: longSeconds } as const
      return { message: 'The desktop is started.', status: await ask(call, started) }
    },
  }),
  route({
    ...post,
    path: '/computeruse/stop',
    summary: 'Stops the desktop. Programs that use the display end too.',
    replies: { 200: Started },
    run: async (call) => {
      const stopped = { of: 'desktop', call: 'stop', answer: ProcessStatuses, seconds: longSeconds } as const
      return { message: 'The desktop is stopped.', status: await ask(call, stopped) }
    },
  }),
  route({
    ...get,
    path: '/computeruse/status',
    summary: 'Returns the state of the desktop: `active`, `partial` (only some of its programs run) or `inactive`.',
    replies: { 200: Status },
    run: async (call) => statusOf(await ask(call, statusCall)),
  }),
  route({
    ...get,
    path: '/computeruse/process-status',
    summary: 'Returns whether all (`active`), some (`partial`) or none (`inactive`) of the desktop programs run.',
    replies: { 200: Status },
    run: async (call) => statusOf(await ask(call, statusCall)),
  }),
  route({
    ...get,
    path: '/computeruse/process/:processName/status',
    summary: 'Returns whether one desktop program runs.',
    params: ProcessParams,
    replies: { 200: ProcessRunning },
    run: async (call) => {
      const { processName } = call.params
      return { processName, running: await ask(call, processCall('process_status', processName, Flag)) }
    },
  }),
  route({
    ...post,
    path: '/computeruse/process/:processName/restart',
    summary: 'Restarts one desktop program.',
    params: ProcessParams,
    replies: { 200: ProcessRestarted },
    run: async (call) => {
      const { processName } = call.params
      await ask(call, processCall('restart', processName, Nothing, longSeconds))
      return { processName, message: 'The process is restarted.' }
    },
  }),
  route({
    ...get,
    path: '/computeruse/process/:processName/logs',
    summary: 'Returns the last 128 KiB that one desktop program wrote to standard output.',
    params: ProcessParams,
    replies: { 200: ProcessLogs },
    run: async (call) => {
      const { processName } = call.params
      return { processName, logs: await ask(call, processCall('logs', processName, Text)) }
    },
  }),
  route({
    ...get,
    path: '/computeruse/process/:processName/errors',
    summary: 'Returns the last 128 KiB that one desktop program wrote to standard error.',
    params: ProcessParams,
    replies: { 200: ProcessErrors },
    run: async (call) => {
      const { processName } = call.params
      return { processName, errors: await ask(call, processCall('errors', processName, Text)) }
    },
  }),
]

const inputRoutes = [
  route({
    ...get,
    path: '/computeruse/mouse/position',
    summary: 'Returns the position of the mouse pointer.',
    replies: { 200: Point },
    run: (call) => ask(call, { of: 'screen', call: 'position', answer: Point }),
  }),
  route({
    ...post,
    path: '/computeruse/mouse/move',
    summary: 'Moves the mouse pointer to a position.',
    body: MoveRequest,
    replies: { 200: Point },
    run: (call) => {
      const { x, y } = call.body
      return ask(call, { of: 'screen', call: 'move', given: { x, y }, answer: Point })
    },
  }),
  route({
    ...post,
    path: '/computeruse/mouse/click',
    summary: 'Clicks or double-clicks at a position. Default: one click with the left button.',
    body: ClickRequest,
    replies: { 200: Point },
    run: (call) => {
      const { x, y, button, double } = call.body
      const given = { x, y, button: buttonOf(button), times: double ? 2 : 1 }
      return ask(call, { of: 'screen', call: 'click', given, answer: Point })
    },
  }),
  route({
    ...post,
    path: '/computeruse/mouse/drag',
    summary: 'Drags the mouse from one position to another. Default: with the left button held down.',
    body: DragRequest,
    replies: { 200: Point },
    run: (call) => {
      const { startX, startY, endX, endY, button } = call.body
      const given = { start: [startX, startY], end: [endX, endY], button: buttonOf(button) }
      return ask(call, { of: 'screen', call: 'drag', given, answer: Point })
    },
  }),
  route({
    ...post,
    path: '/computeruse/mouse/scroll',
    summary: 'Scrolls the mouse wheel up or down at a position. Default: one step.',
    body: ScrollRequest,
    replies: { 200: Scrolled },
    run: async (call) => {
      const { x, y, direction, amount } = call.body
      const given = { x, y, button: wheel[direction], times: amount ?? 1 }
      return { success: await ask(call, { of: 'screen', call: 'scroll', given, answer: Flag }) }
    },
  }),
  route({
    ...post,
    path: '/computeruse/keyboard/type',
    summary: 'Types a text into the focused window.',
    body: TypeRequest,
    replies: { 200: Empty },
    run: async (call) => {
      await ask(call, typeCall(call.body))
      return {}
    },
  }),
  route({
    ...post,
    path: '/computeruse/keyboard/key',
    summary: 'Presses a key while modifier keys are held down.',
    body: KeyRequest,
    replies: { 200: Empty },
    run: async (call) => {
      const keys = chordOf(call.body.key, call.body.modifiers ?? [])
      await ask(call, { of: 'screen', call: 'press', given: { keys }, answer: Nothing })
      return {}
    },
  }),
  route({
    ...post,
    path: '/computeruse/keyboard/hotkey',
    summary: 'Presses several keys together, such as ctrl+c.',
    body: HotkeyRequest,
    replies: { 200: Empty },
    run: async (call) => {
      const keys = readHotkey(call.body.keys)
      await ask(call, { of: 'screen', call: 'press', given: { keys }, answer: Nothing })
      return {}
    },
  }),
]

const screenRoutes = [
  route({
    ...get,
    path: '/computeruse/screenshot',
    summary: 'Returns a screenshot of the display as a PNG image in base64.',
    query: ScreenshotQuery,
    replies: { 200: Screenshot },
    run: (call) => ask(call, pictureCall(call.query)),
  }),
  route({
    ...get,
    path: '/computeruse/screenshot/region',
    summary: 'Returns a screenshot of one region of the display as a PNG image in base64.',
    query: RegionQuery,
    replies: { 200: Screenshot },
    run: async (call) => ask(call, pictureCall(asMeant(call.query, call.request))),
  }),
  route({
    ...get,
    path: '/computeruse/screenshot/compressed',
    summary: 'Returns a compressed screenshot of the display: JPEG (default), PNG or WebP, in base64.',
    query: CompressedQuery,
    replies: { 200: Screenshot },
    run: async (call) => ask(call, pictureCall({ format: 'jpeg', ...call.query })),
  }),
  route({
    ...get,
    path: '/computeruse/screenshot/region/compressed',
    summary: 'Returns a compressed screenshot of one region of the display: JPEG (default), PNG or WebP, in base64.',
    query: CompressedRegionQuery,
    replies: { 200: Screenshot },
    run: async (call) => ask(call, pictureCall({ format: 'jpeg', ...call.query })),
  }),
  route({
    ...get,
    path: '/computeruse/display/info',
    summary: 'Returns the size of the display.',
    replies: { 200: Displays },
    run: async (call) => ({
      displays: await ask(call, { of: 'screen', call: 'display', answer: Displays.properties.displays }),
    }),
  }),
  route({
    ...get,
    path: '/computeruse/display/windows',
    summary: 'Lists the windows on the display, at most 500.',
    replies: { 200: Windows },
    run: async (call) => ({
      windows: await ask(call, { of: 'screen', call: 'windows', answer: Windows.properties.windows }),
    }),
  }),
]

/** Makes a call about one recording. Refuses text that is not an id, because the id becomes part of a path in the sandbox. */
const recordingCall = (call: string, id: string) => {
  if (!/^[0-9a-f]{32}$/.test(id)) throw new Problem('not_found', 'There is no such recording.')
  return { of: 'recordings', call, given: { id }, answer: Recording } as const
}

const recordingRoutes = [
  route({
    ...post,
    path: '/computeruse/recordings/start',
    summary: 'Starts a recording of the display. The recording ends by itself after one hour or at 1 GiB.',
    body: RecordingRequest,
    bodyOptional: true,
    replies: { 200: Recording },
    run: (call) => {
      const label = call.body?.label ?? null
      return ask(call, { of: 'recordings', call: 'start_recording', given: { label }, answer: Recording })
    },
  }),
  route({
    ...post,
    path: '/computeruse/recordings/stop',
    summary: 'Stops a recording.',
    body: StopRecordingRequest,
    replies: { 200: Recording },
    run: async (call) => ask(call, recordingCall('stop_recording', call.body.id)),
  }),
  route({
    ...get,
    path: '/computeruse/recordings',
    summary: 'Lists the recordings, oldest first.',
    replies: { 200: Recordings },
    run: async (call) => {
      const listed = { of: 'recordings', call: 'list_recordings', answer: Recordings.properties.recordings } as const
      return { recordings: await ask(call, listed) }
    },
  }),
  route({
    ...get,
    path: '/computeruse/recordings/:id',
    summary: 'Returns the status, file, times and size of one recording.',
    params: RecordingParams,
    replies: { 200: Recording },
    run: async (call) => ask(call, recordingCall('get_recording', call.params.id)),
  }),
  route({
    ...get,
    path: '/computeruse/recordings/:id/download',
    summary: 'Downloads the MP4 file of a recording, or one range of its bytes.',
    params: RecordingParams,
    replies: { 200: Type.Any(), 206: Type.Any() },
    run: async (call) => {
      const { filePath } = await ask(call, recordingCall('get_recording', call.params.id))
      const { agent, assignment } = call.sandbox
      return download(agent.files(assignment.user), filePath, call.request, call.reply)
    },
  }),
  route({
    method: 'DELETE',
    needs: 'sandbox',
    path: '/computeruse/recordings/:id',
    summary: 'Deletes a recording. A running recording is stopped first.',
    params: RecordingParams,
    replies: { 204: null },
    run: async (call) => {
      await ask(call, { ...recordingCall('delete_recording', call.params.id), answer: Nothing })
    },
  }),
]

const accessibilityRoutes = [
  route({
    ...get,
    path: '/computeruse/a11y/tree',
    summary:
      'Returns the accessibility tree of the focused program, one program or all programs: at most 2000 nodes, 64 levels.',
    query: TreeQuery,
    replies: { 200: Tree },
    run: async (call) => {
      const { scope, pid, maxDepth } = call.query
      const given = { ...scopeOf(scope, pid), depth: maxDepth ?? -1 }
      return treeOf(await ask(call, { of: 'accessibility', call: 'tree', given, answer: TreeRows }))
    },
  }),
  route({
    ...post,
    path: '/computeruse/a11y/find',
    summary: 'Finds nodes of the accessibility tree by role, name and states. Default limit: 50 nodes.',
    body: FindRequest,
    replies: { 200: Nodes },
    run: async (call) => {
      const { scope, pid, role, name, nameMatch, states, limit } = call.body
      const given = {
        ...scopeOf(scope, pid),
        role: role || null,
        name: name || null,
        how: nameMatch ?? 'substring',
        states: states ?? [],
        limit: limit ?? 50,
      }
      return ask(call, { of: 'accessibility', call: 'find', given, answer: Nodes })
    },
  }),
  route({
    ...post,
    path: '/computeruse/a11y/node/focus',
    summary: 'Gives the keyboard focus to a node of the accessibility tree.',
    body: NodeRequest,
    replies: { 200: Empty },
    run: async (call) => {
      await ask(call, { of: 'accessibility', call: 'focus', given: { id: call.body.id }, answer: Nothing })
      return {}
    },
  }),
  route({
    ...post,
    path: '/computeruse/a11y/node/invoke',
    summary: 'Performs an action of an accessibility node. Default: the first action of the node.',
    body: InvokeRequest,
    replies: { 200: Empty },
    run: async (call) => {
      const given = { id: call.body.id, action: call.body.action ?? null }
      await ask(call, { of: 'accessibility', call: 'invoke', given, answer: Nothing })
      return {}
    },
  }),
  route({
    ...post,
    path: '/computeruse/a11y/node/value',
    summary: 'Sets the text or the number in an accessibility node.',
    body: ValueRequest,
    replies: { 200: Empty },
    run: async (call) => {
      const given = { id: call.body.id, value: call.body.value }
      await ask(call, { of: 'accessibility', call: 'set_value', given, answer: Nothing })
      return {}
    },
  }),
]

export const computerUseRoutes = [
  ...desktopRoutes,
  ...inputRoutes,
  ...screenRoutes,
  ...recordingRoutes,
  ...accessibilityRoutes,
]
