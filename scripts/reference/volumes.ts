import { type VolumeEvent, volumeEvents, volumeMoves, volumeStates } from '#src/control/volumes/lifecycle.ts'
import { code, page, table } from './markdown.ts'

const meanings: Record<(typeof volumeStates)[number], string> = {
  ready: 'sandboxes can mount it',
  error: 'its files are lost; it can only be deleted',
  pending_delete: 'its runner removes the files; its name is free',
  deleted: 'nothing of it is left; `includeDeleted` shows it for a week',
}

const happenings: Record<VolumeEvent, string> = {
  create: '`POST /volumes`',
  delete: '`DELETE /volumes/{id}`, or the end of its organization, when no sandbox mounts it',
  drop: 'the same, and nothing of it can be on any runner',
  remove: 'a runner says that nothing of it is left',
  'lose-runner': 'the runner that has its files is taken out of service',
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
    'What is not in these tables cannot happen. An event leaves a volume as it is in every state that it has no move from.',
    picture(),
    '## What each state means',
    table(
      ['state', 'means'],
      volumeStates.map((state) => [code(state), meanings[state]]),
    ),
    'Reserved: `creating`, `pending_create` and `deleting`, words of the interface; no volume here is ever in them.',
    '## What each event does',
    table(
      ['event', 'happens when', 'moves'],
      volumeEvents.map((event) => [event, happenings[event], movesOf(event)]),
    ),
  )
