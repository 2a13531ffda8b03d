import { type VolumeEvent, volumeEvents, volumeMoves, volumeStates } from '#src/control/volumes/lifecycle.ts'
import { code, page, table } from './markdown.ts'

const meanings: Record<(typeof volumeStates)[number], string> = {
  ready: 'sandboxes can mount it',
  error: 'its files are lost; it can only be deleted',
  pending_delete: 'its runner is removing the files; its name can be used again',
  deleted: 'all its files are removed; `includeDeleted` lists it for a week',
}

const happenings: Record<VolumeEvent, string> = {
  create: '`POST /volumes`',
  delete: '`DELETE /volumes/{id}`, or the organization is deleted; only if no sandbox mounts the volume',
  drop: 'the same, and no runner can have files of the volume',
  remove: 'a runner reports that it has no files of the volume any more',
  'lose-runner': 'the runner with its files is removed permanently',
}

const picture = () => {
  const lines = volumeMoves.map(([on, from, to]) => `  ${from ?? '[*]'} --> ${to}: ${on}`)
  return ['```mermaid', 'stateDiagram-v2', ...lines, '```'].join('\n')
}

const movesOf = (event: VolumeEvent): string =>
  volumeMoves
    .filter(([on]) => on === event)
    .map(([, from, to]) => `${from === null ? '' : `${code(from)} `}→ ${code(to)}`)
    .join('; ')

export const volumesPage = () =>
  page(
    'The life of a volume',
    'This page shows all changes of state that a volume can make. If an event has no move from the present state, the event changes nothing.',
    picture(),
    '## What each state means',
    table(
      ['state', 'meaning'],
      volumeStates.map((state) => [code(state), meanings[state]]),
    ),
    'Reserved: `creating`, `pending_create` and `deleting`. The public API defines these states, but no volume of this server is ever in one of them.',
    '## What each event does',
    table(
      ['event', 'happens when', 'moves'],
      volumeEvents.map((event) => [event, happenings[event], movesOf(event)]),
    ),
  )
