import {
  type SnapshotEvent,
  snapshotEvents,
  snapshotMoves,
  snapshotStateRows,
  snapshotStates,
} from '#src/control/snapshots/lifecycle.ts'
import { code, page, table } from './markdown.ts'

const happenings: Record<SnapshotEvent, string> = {
  build: '`POST /snapshots` with a Dockerfile',
  bring: '`POST /snapshots` with the name of an image',
  copy: '`POST /sandbox/{id}/snapshot`',
  provide: 'the server starts for the first time and adds its built-in snapshot',
  progress: 'a runner reports progress with building, pulling or copying the image',
  arrive: 'a runner has the complete image',
  find: 'a runner connects that already has the image, and has reported the content of the image before',
  refuse: 'the image is complete, but larger than the limit for a snapshot or for the disks of its sandboxes',
  fail: 'no runner can build, pull or copy the image, or the last runner with the image has lost it permanently',
  'give-up': 'no runner has reported progress with the image for an hour',
  lose: 'no runner has the image any more; runners pull or build it again',
  'lose-runner': 'the only runner with the image is removed permanently',
  deactivate: '`POST /snapshots/{id}/deactivate`',
  idle: 'nobody has used the snapshot for the time that is set for its organization',
  activate: '`POST /snapshots/{id}/activate`, and a runner still has the image',
  'bring-again': '`POST /snapshots/{id}/activate`, and no runner has the image; runners pull or build it again',
  delete: '`DELETE /snapshots/{id}`, or the organization is deleted',
}

const yes = (is: boolean) => (is ? 'yes' : '')

const statesInUse = snapshotStates.filter((state) => snapshotMoves.some(([, , to]) => to === state))
const reservedStates = snapshotStates.filter((state) => !statesInUse.includes(state))

/** Draws the moves that change the state. The move `delete` is left out, because it may begin in every state. */
const picture = () => {
  const arrows = new Map<string, SnapshotEvent[]>()
  for (const [on, from, to] of snapshotMoves) {
    if (on === 'delete' || from === to) continue
    const arrow = `${from ?? '[*]'} --> ${to}`
    arrows.set(arrow, [...(arrows.get(arrow) ?? []), on])
  }
  const lines = [...arrows].map(([arrow, ons]) => `  ${arrow}: ${ons.join(', ')}`)
  return ['```mermaid', 'stateDiagram-v2', ...lines, '```'].join('\n')
}

const movesOf = (event: SnapshotEvent): string => {
  const rows = snapshotMoves.filter(([on, from]) => on === event && (from === null || statesInUse.includes(from)))
  const ends = [...new Set(rows.map(([, , to]) => to))]
  return ends
    .map((end) => {
      const starts = rows.filter(([, , to]) => to === end).map(([, from]) => from)
      const from = starts.flatMap((start) => (start === null ? [] : [code(start)])).join(', ')
      return `${from}${from === '' ? '' : ' '}→ ${end === null ? 'deleted' : code(end)}`
    })
    .join('; ')
}

export const snapshotsPage = () =>
  page(
    'The life of a snapshot',
    'This page shows all changes of state that a snapshot can make. If an event has no move from the present state, the event changes nothing. `delete` is possible in every state and is not drawn.',
    picture(),
    '## What each state means',
    table(
      ['state', 'is being built, pulled or copied', 'runners keep its image'],
      statesInUse.map((state) => {
        const { isInMaking, keepsImage } = snapshotStateRows[state]
        return [code(state), yes(isInMaking), yes(keepsImage)]
      }),
    ),
    `Reserved: ${reservedStates.map(code).join(', ')}. The public API defines this state, but no snapshot of this server is ever in it.`,
    'Sandboxes can be created only from a snapshot that is `active`. When a snapshot is `inactive`, runners remove its image if they can fetch it again and no other active snapshot uses it. The field `errorReason` says why a snapshot is in `error` or `build_failed`.',
    '## What each event does',
    table(
      ['event', 'happens when', 'moves'],
      snapshotEvents.map((event) => [event, happenings[event], movesOf(event)]),
    ),
  )
