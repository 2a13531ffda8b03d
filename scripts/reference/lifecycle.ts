import { moves, refusals, settlements, statesAwaitingImage } from '#src/control/sandboxes/record/lifecycle.ts'
import { reportable } from '#src/control/sandboxes/record/schemas.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { code, page, table } from './markdown.ts'
import { statesInUse } from './states-in-use.ts'

/** Draws the moves as a diagram, without the verb `delete`, which may begin in every state and would hide the other moves. */
export const lifecyclePage = () => {
  const drawn = moves.filter(([on]) => on !== 'delete')
  // Draws an arrow from the state on the way (`through`) to the last state, unless another move begins in `through`.
  // For example, the verb `build` goes through the state `pending_build`, in which the verb `place` begins.
  const isDrawnOn = (through: SandboxState) => drawn.some(([, from]) => from === through)
  const arrows = [
    ...drawn.map(([on, from, through]) => `${from ?? '[*]'} --> ${through}: ${on}`),
    ...drawn.flatMap(([, , through, to]) => (isDrawnOn(through) ? [] : [`${through} --> ${to}`])),
    ...statesAwaitingImage.map((state) => `${state} --> build_failed`),
    'destroying --> destroyed',
    'destroyed --> [*]',
  ]
  const words = reportable.filter((word) => word !== 'error' && word !== 'destroyed')
  const told = statesInUse.map((state) => [
    code(state),
    ...words.map((word) => {
      const to = settlements[state][word]
      return to === undefined ? '' : code(to)
    }),
    (refusals[state] ?? []).map(code).join(', '),
  ])
  return page(
    'The life of a sandbox',
    'This diagram shows the moves from the tables in [states](states.md). Two things are not drawn. `delete` leads from every state through `destroying` to `destroyed`. Every other move except a build can also end in `error`, which a sandbox leaves by `recover` or `delete`.',
    ['```mermaid', 'stateDiagram-v2', ...[...new Set(arrows)].map((arrow) => `  ${arrow}`), '```'].join('\n'),
    '## What a runner’s report changes',
    [
      'A runner reports the state of each of its sandboxes. The table shows the new state for the state before (first column) and the report (other columns).',
      [
        '- Only a report about the newest generation counts: the generation is a number that grows whenever the sandbox should become something else.',
        '- An empty cell: the report changes nothing.',
        '- A report of `started` or `paused` counts only if the sandbox should be in that state.',
        '- In a state during a move, and in `started`, `stopped` and `paused`, a report of `error` or `destroyed` leads to `error`. In `destroying`, `destroyed` leads to `destroyed`. In the states that wait for an image, these two reports change nothing.',
        '- A sandbox leaves `error` when its runner reports the state that the sandbox should be in, however late.',
        '- `snapshotting` usually ends with a report about the image of the snapshot.',
        '- If the runner refuses a move, the sandbox gets the state that the runner reports, and the reason. The last column lists the possible states.',
      ].join('\n'),
    ].join('\n\n'),
    table(['state', ...words.map((word) => `report ${code(word)}`), 'states after a refusal'], told),
  )
}
