// `/users`: the caller themselves. The guard has read the user already, so this room asks nothing of the database.
import { type ControlRoute, route } from '../auth/route.ts'
import { User } from './schemas.ts'
import { asUserView } from './user.ts'

export const userRoutes = (): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/users/me',
    needs: 'user',
    summary: 'The user that the credential belongs to.',
    replies: { 200: User },
    run: ({ user }) => asUserView(user),
  }),
]
