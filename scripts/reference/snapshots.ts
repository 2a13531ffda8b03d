import {
  type SnapshotEvent,
  snapshotEvents,
  snapshotMoves,
  snapshotStateRows,
  snapshotStates,
} from '#src/control/snapshots/lifecycle.ts'
import { code, page, table } from './markdown.ts'

const happenings: Record<SnapshotEvent, string> = {
  build: '`POST /snapshots` with a definition',
  bring: '`POST /snapshots` with the name of an image',
  copy: '`POST /sandbox/{id}/snapshot`',
  provide: 'the server starts for the first time and has the built-in snapshot',
  progress: 'a runner says that it has come further with the image',
  arrive: 'a runner has the image',
  find: 'a runner that says hello has the image already, and has said before what is in it',
  refuse: 'the image that has arrived is larger than a snapshot, or the disks of its sandboxes, may be',
  fail: 'no runner can make or bring the image, or the last one that had it has lost it for good',
  'give-up': 'no runner has said anything about the image for an hour',
  lose: 'no runner has the image any more; they bring it again',
  'lose-runner': 'the only runner that kept the image is taken out of service',
  deactivate: '`POST /snapshots/{id}/deactivate`',
  idle: 'nobody has used the snapshot for as long as its organization says',
  activate: '`POST /snapshots/{id}/activate`, and a runner still has the image',
  'bring-again': '`POST /snapshots/{id}/activate`, and no runner has the image',
  delete: '`DELETE /snapshots/{id}`, or the end of its organization',
}

const yes = (is: boolean) => (is ? 'yes' : '')

const statesInUse = snapshotStates.filter((state) => snapshotMoves.some(([, , to]) => to === state))
const reservedStates = snapshotStates.filter((state) => !statesInUse.includes(state))

/** Draws the moves that change the state. `delete` is left out, because it may begin in every state. */
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
      return `${from}${from === '' ? '' : ' '}→ ${end === null ? 'gone' : code(end)}`
    })
    .join('; ')
}

export const snapshotsPage = () =>
  page(
    'The life of a snapshot',
    'What is not in these tables cannot happen. An event leaves a snapshot as it is in every state that it has no move from. `delete` leads out of every state, and is not drawn.',
    picture(),
    '## What each state means',
    table(
      ['state', 'is being made or brought', 'runners keep its image'],
      statesInUse.map((state) => {
        const { isInMaking, keepsImage } = snapshotStateRows[state]
        return [code(state), yes(isInMaking), yes(keepsImage)]
      }),
    ),
    `Reserved: ${reservedStates.map(code).join(', ')}, a word of the interface; no snapshot here is ever in it.`,
    'Sandboxes are made of a snapshot that is `active`. The image of one that is `inactive` goes from the runners where it can be brought again and no other active snapshot has it. A snapshot that is `error` or `build_failed` says why in `errorReason`.',
    '## What each event does',
    table(
      ['event', 'happens when', 'moves'],
      snapshotEvents.map((event) => [event, happenings[event], movesOf(event)]),
    ),
  )
