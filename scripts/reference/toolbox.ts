import { toolboxEndpoints } from '#src/toolbox/endpoints.ts'
import type { ToolboxNeeds } from '#src/toolbox/sandbox.ts'
import { code, page, table } from './markdown.ts'
import { braced, type Described, describe, fieldRows, type Shape, statusesOf } from './routes.ts'

type ToolboxRoute = Described & Pick<(typeof toolboxEndpoints)[number], 'needs' | 'streamsBody' | 'socket'>

/** Returns a table row for each field of an answer. If the answer is a list, the fields are those of one element. */
const answerRows = ({ replies }: Described): string[][] => {
  const several = Object.keys(replies).length > 1
  return Object.entries(replies).flatMap(([status, reply]) => {
    const shape = (reply ?? {}) as Shape
    const part = several ? status : 'answer'
    return shape.type === 'array' ? fieldRows(`${part}, each`, shape.items) : fieldRows(part, shape)
  })
}

const sandboxIs: Record<ToolboxNeeds, string> = {
  sandbox: '',
  'sandbox, also paused': 'Also of a paused sandbox.',
}

const sentencesOf = (route: ToolboxRoute): string =>
  [
    route.socket === undefined ? `Answers ${statusesOf(route)}.` : '',
    route.socket !== undefined && '101' in route.replies ? 'A WebSocket.' : '',
    route.socket !== undefined && !('101' in route.replies) ? `Answers ${statusesOf(route)}, or is a WebSocket.` : '',
    route.streamsBody === true ? 'The body is read as it comes, whatever its size.' : '',
    sandboxIs[route.needs],
  ]
    .filter(Boolean)
    .join(' ')

export const toolboxPage = () => {
  const routes: readonly ToolboxRoute[] = toolboxEndpoints
  return page(
    'Endpoints of the toolbox',
    'All are below `{proxy_url}/toolbox/{sandboxId}`, open to who may use the sandbox, and need it to be `started` unless they say otherwise. A field with \\* must be there, or always is. What can go wrong is in [errors](errors.md).',
    table(
      ['method', 'path', 'what it does'],
      routes.map((route) => [route.method, code(braced(route.path)), route.summary]),
    ),
    ...routes.map((route) => describe(route, sentencesOf(route), answerRows(route))),
  )
}
