// `/health` answers 200 while this process runs.
// `/health/ready` answers 503 while the database is unreachable or the default snapshot is being made.
import Type from 'typebox'
import { Problem } from '#src/problems.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import type { Parts } from '../parts.ts'
import { checkMade } from '../snapshots/awaiting.ts'
import { findSnapshot } from '../snapshots/service.ts'

const Health = Type.Object({ status: Type.Literal('ok') })

/** An organization id that does not exist. With this id, a query finds only general snapshots. */
const nobody = ''

/** Throws 503 while the default snapshot is being made, for example at the first start. */
const checkDefaultSnapshot = async ({ database, settings }: HealthParts): Promise<void> => {
  const snapshot = await findSnapshot(database.sql, nobody, settings.defaultSnapshot)
  if (snapshot) checkMade(snapshot)
}

type HealthParts = Pick<Parts, 'database' | 'settings'>

export const healthRoutes = ({ database, settings }: HealthParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/health',
    needs: 'public',
    summary: 'Answers 200 while this server is running.',
    replies: { 200: Health },
    run: () => ({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/health/ready',
    needs: 'public',
    summary: 'Answers 200 if the database can be reached and the default snapshot is ready; otherwise 503.',
    replies: { 200: Health },
    run: async () => {
      try {
        await database.sql`select 1`
      } catch (cause) {
        throw new Problem('unavailable', 'The database cannot be reached.', { cause })
      }
      await checkDefaultSnapshot({ database, settings })
      return { status: 'ok' }
    },
  }),
]
