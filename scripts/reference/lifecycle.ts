import { moves, refusals, settlements, statesAwaitingImage } from '#src/control/sandboxes/record/lifecycle.ts'
import { reportable } from '#src/control/sandboxes/record/schemas.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { code, page, table } from './markdown.ts'
import { statesInUse } from './states-in-use.ts'

/** Draws the moves as a diagram, without `delete`, which may begin in every state and would hide the other moves. */
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
    'The same tables as in [states](states.md), drawn. `delete` leads from every state through `destroying` to `destroyed`; every other move but a build may also end in `error`, from which `recover` and `delete` lead on.',
    ['```mermaid', 'stateDiagram-v2', ...[...new Set(arrows)].map((arrow) => `  ${arrow}`), '```'].join('\n'),
    '## What the word of a runner changes',
    'Of the newest generation only; a word that is not here changes nothing. `started` and `paused` count only where that is wanted. From every state with an entry, `error` and `destroyed` lead to `error`, except that `destroyed` ends `destroying`. Out of `error` the word that was wanted leads there, however late. `snapshotting` ends with its image. What a runner refuses leaves the sandbox in one of the states of the last column, with its reason.',
    table(['state', ...words.map((word) => `says ${code(word)}`), 'refuses, and it is'], told),
  )
}
