// `POST /env` changes the variables of later processes. `POST /init` does nothing; it exists because some clients first send a
// token there.
import Type from 'typebox'
import { optional, textMap } from '#src/http/shapes.ts'
import { Problem } from '#src/problems.ts'
import { route } from '../sandbox.ts'

const longestValue = 1024 * 1024

/**
 * Name of a variable to remove. Any name is allowed, because an image may have a variable with a name that `POST /env` would refuse
 * to set.
 */
const Name = Type.String({ minLength: 1, maxLength: 65_536 })

const UpdateEnvRequest = Type.Object({
  set: optional(textMap({ names: 65_536, values: longestValue, most: 1000 })),
  unset: optional(Type.Array(Name, { maxItems: 1000 })),
  unsetValuePrefix: optional(Type.String({ maxLength: longestValue })),
})

const InitializeRequest = Type.Object({ token: Type.String({ minLength: 1, maxLength: 16_384 }) })

const Done = Type.Object({ message: Type.String() })

export const variableRoutes = [
  route({
    method: 'POST',
    path: '/env',
    needs: 'sandbox',
    summary: 'Sets and removes environment variables of all processes that start later.',
    body: UpdateEnvRequest,
    replies: { 200: Done },
    run: async ({ body, changeVariables }) => {
      const { set, unset, unsetValuePrefix } = body
      if (!('set' in body || 'unset' in body || 'unsetValuePrefix' in body)) {
        throw new Problem('bad_request', 'One of set, unset and unsetValuePrefix must be given.')
      }
      await changeVariables({
        set: set ?? {},
        unset: unset ?? [],
        ...(unsetValuePrefix ? { unsetValuePrefix } : {}),
      })
      return { message: 'Processes that start from now on have these variables.' }
    },
  }),
  route({
    method: 'POST',
    path: '/init',
    needs: 'sandbox',
    summary: 'Accepts a token and ignores it, for clients that call this first. The gate checks every call anyway.',
    body: InitializeRequest,
    replies: { 200: Done },
    run: () => ({ message: 'The toolbox is ready. It needs no token, so the token is not kept.' }),
  }),
]
