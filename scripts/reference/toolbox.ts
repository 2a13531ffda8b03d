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
    return shape.type === 'array' ? fieldRows(`${part}, each item`, shape.items) : fieldRows(part, shape)
  })
}

const sandboxIs: Record<ToolboxNeeds, string> = {
  sandbox: '',
  'sandbox, also paused': 'The sandbox may also be `paused`.',
}

const sentencesOf = (route: ToolboxRoute): string =>
  [
    route.socket === undefined ? `Answers ${statusesOf(route)}.` : '',
    route.socket !== undefined && '101' in route.replies ? 'Opens a WebSocket.' : '',
    route.socket !== undefined && !('101' in route.replies)
      ? `Answers ${statusesOf(route)}, or opens a WebSocket if the client asks for one.`
      : '',
    route.streamsBody === true ? 'The body is streamed and has no maximum size.' : '',
    sandboxIs[route.needs],
  ]
    .filter(Boolean)
    .join(' ')

export const toolboxPage = () => {
  const routes: readonly ToolboxRoute[] = toolboxEndpoints
  return page(
    'Endpoints of the toolbox',
    'All paths are below `{proxy_url}/toolbox/{sandboxId}`. Anybody who may use the sandbox may call them. The sandbox must be `started`, unless the call says otherwise. A field with \\* is required in a request, and always present in an answer. [Errors](errors.md) lists the errors that calls can return.',
    table(
      ['method', 'path', 'what it does'],
      routes.map((route) => [route.method, code(braced(route.path)), route.summary]),
    ),
    ...routes.map((route) => describe(route, sentencesOf(route), answerRows(route))),
  )
}
