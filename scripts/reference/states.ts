import {
  alreadyDone,
  forkableStates,
  moves,
  refusals,
  settlements,
  stateRows,
} from '#src/control/sandboxes/record/lifecycle.ts'
import { sandboxStates } from '#src/wire/sandbox-state.ts'
import { code, page, table } from './markdown.ts'
import { statesInUse } from './states-in-use.ts'

const yes = (is: boolean) => (is ? 'yes' : '')

const reservedStates = sandboxStates.filter((state) => !statesInUse.includes(state))
const movesInUse = moves.filter(([, from]) => from === null || statesInUse.includes(from))

/** Returns the state after a failed move. Empty for a claim, which cannot fail because it has no state on the way. */
const failureOf = ([, , through, to]: (typeof moves)[number]): string =>
  through === to ? '' : code(settlements[through].error ?? stateRows[through].whenStuck ?? '')

export const statesPage = () =>
  page(
    'States of a sandbox',
    'These tables show all states of a sandbox and all moves between them.',
    '## What each state means',
    table(
      ['state', 'can stay in this state', 'reserves CPU and memory', 'reserves disk', 'stuck after', 'then'],
      statesInUse.map((state) => {
        const row = stateRows[state]
        return [
          code(state),
          yes(row.settled),
          yes(row.holdsCompute),
          yes(row.holdsDisk),
          row.stuckAfterSeconds === null ? '' : `${row.stuckAfterSeconds} s`,
          row.whenStuck === null
            ? ''
            : row.whenStuck === 'retry'
              ? 'the runner is asked again'
              : `becomes \`${row.whenStuck}\``,
        ]
      }),
    ),
    `Reserved: ${reservedStates.map(code).join(', ')}. The public API defines these states, but no sandbox of this server is ever in one of them.`,
    '## What each verb does',
    table(
      ['verb', 'from', 'through', 'to', 'state after a refusal', 'state after a failure'],
      movesInUse.map((move) => {
        const [on, from, through, to] = move
        const refused = (refusals[through] ?? []).map(code).join(', ')
        return [on, from === null ? '' : code(from), code(through), code(to), refused, failureOf(move)]
      }),
    ),
    'Refusal: the runner could not do what was asked, or refused to do it, and the sandbox is undamaged. The sandbox gets the listed state in which the runner found it, and the reason. Failure: everything else, including a move that takes longer than the time in the column `stuck after`. A failed snapshot does not change the state of its sandbox, unless the sandbox itself stopped or was lost.',
    `A sandbox can be forked if it is ${new Intl.ListFormat('en', { type: 'disjunction' }).format(forkableStates.map(code))}. The fork does not change its state. The row of \`fork\` shows the states of the new sandbox.`,
    `If the sandbox is already in the wanted state, the call returns the sandbox and changes nothing: ${alreadyDone.map(([verb, state]) => `${verb} on ${code(state)}`).join(', ')}.`,
  )
