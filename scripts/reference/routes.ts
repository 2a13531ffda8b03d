// Describes HTTP routes: their fields with types and bounds, and their answers.
import type { TSchema } from 'typebox'
import type { ControlRoute } from '#src/control/auth/route.ts'
import { code, table } from './markdown.ts'

export type Shape = TSchema & {
  type?: string
  properties?: Record<string, Shape>
  required?: string[]
  items?: Shape
  anyOf?: Shape[]
  enum?: unknown[]
  const?: unknown
  minimum?: number
  maximum?: number
  maxLength?: number
  maxItems?: number
  maxProperties?: number
  default?: unknown
}

const typeOf = (shape: Shape): string => {
  if (shape.enum !== undefined)
    return shape.enum.length > 6
      ? `value (one of ${shape.enum.length} in openapi.json)`
      : shape.enum.map(String).join(', ')
  if (shape.const !== undefined) return String(shape.const)
  if (shape.anyOf !== undefined) return shape.anyOf.map(typeOf).join(' or ')
  if (shape.type === 'array') return `list of ${typeOf(shape.items ?? ({} as Shape))}`
  return shape.type ?? 'anything'
}

const boundsOf = (shape: Shape): string => {
  const { anyOf = [], items, minimum, maximum, maxLength, maxItems, maxProperties, default: standard } = shape
  const ofEach = items === undefined ? '' : boundsOf(items)
  return [
    ...anyOf.map(boundsOf),
    minimum === undefined ? '' : `≥ ${minimum}`,
    maximum === undefined ? '' : `≤ ${maximum}`,
    maxLength === undefined ? '' : `≤ ${maxLength} characters`,
    maxItems === undefined ? '' : `≤ ${maxItems} items`,
    maxProperties === undefined ? '' : `≤ ${maxProperties} entries`,
    ofEach === '' ? '' : `each ${ofEach}`,
    standard === undefined ? '' : `default ${JSON.stringify(standard)}`,
  ]
    .filter(Boolean)
    .join(', ')
}

export const fieldRows = (part: string, schema: TSchema | undefined) => {
  const { properties = {}, required = [] } = (schema ?? {}) as Shape
  return Object.entries(properties).map(([name, shape]) => [
    part,
    `${code(name)}${required.includes(name) && shape.default === undefined ? ' \\*' : ''}`,
    typeOf(shape).replaceAll('|', '\\|'),
    boundsOf(shape),
  ])
}

/** The parts of a route that a page describes. The routes of control and of the toolbox have all of them. */
export type Described = Pick<ControlRoute, 'method' | 'path' | 'summary' | 'query' | 'body'> & {
  replies: ControlRoute['replies']
}

export const braced = (path: string) => path.replaceAll(/:(\w+)/g, '{$1}')

export const statusesOf = ({ replies }: Described) => Object.keys(replies).join(', ')

export const describe = (route: Described, sentences: string, answers: string[][] = []) => {
  const fields = [...fieldRows('query', route.query), ...fieldRows('body', route.body), ...answers]
  return [
    `### ${route.method} ${braced(route.path)}`,
    route.summary,
    sentences,
    ...(fields.length === 0 ? [] : [table(['in', 'field', 'type', 'bounds'], fields)]),
  ].join('\n\n')
}
