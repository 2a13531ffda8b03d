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
    'What is not in these tables cannot happen.',
    '## What each state means',
    table(
      ['state', 'at rest', 'holds cpu and memory', 'holds disk', 'stuck after', 'then'],
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
              ? 'is asked for again'
              : `becomes \`${row.whenStuck}\``,
        ]
      }),
    ),
    `Reserved: ${reservedStates.map(code).join(', ')}. They are words of the interface, and no sandbox here is ever in one of them.`,
    '## What each verb does',
    table(
      ['verb', 'from', 'through', 'to', 'if it is refused', 'if it fails'],
      movesInUse.map((move) => {
        const [on, from, through, to] = move
        const refused = (refusals[through] ?? []).map(code).join(', ')
        return [on, from === null ? '' : code(from), code(through), code(to), refused, failureOf(move)]
      }),
    ),
    'Refused: the runner could not do it, or would not, and the sandbox is well. It is then, with the reason, in that of the named states that the runner found it in. Failed is all else, also what takes too long, as above. A snapshot that fails leaves its sandbox as it was, unless something happened to the sandbox itself.',
    `A fork is asked of a sandbox that is ${forkableStates.map(code).join(', ')}, whose state it does not change; its row is the child's.`,
    `A verb that finds its work done answers the sandbox as it is: ${alreadyDone.map(([verb, state]) => `${verb} on ${code(state)}`).join(', ')}.`,
  )
