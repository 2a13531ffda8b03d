// `/health`: alive says that this process answers; ready says that it can also do its work.
import Type from 'typebox'
import { Problem } from '#src/problems.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import type { Parts } from '../parts.ts'

const Health = Type.Object({ status: Type.Literal('ok') })

export const healthRoutes = ({ database }: Pick<Parts, 'database'>): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/health',
    needs: 'public',
    summary: 'Answers while this server is alive.',
    replies: { 200: Health },
    run: () => ({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/health/ready',
    needs: 'public',
    summary: 'Answers while this server and its database can do their work; 503 otherwise.',
    replies: { 200: Health },
    run: async () => {
      try {
        await database.sql`select 1`
      } catch (cause) {
        throw new Problem('unavailable', 'The database cannot be reached.', { cause })
      }
      return { status: 'ok' }
    },
  }),
]
