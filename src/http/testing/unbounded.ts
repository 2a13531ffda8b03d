// Finds texts, lists and maps without a maximum in request schemas. Without a maximum, the server could not limit the memory for
// such values.
import type { TSchema } from 'typebox'
import type { Route } from '../route.ts'

type Shape = TSchema & {
  type?: string
  anyOf?: Shape[]
  items?: Shape
  properties?: Record<string, Shape>
  patternProperties?: Record<string, Shape>
  enum?: unknown[]
  const?: unknown
  maxLength?: number
  maxItems?: number
  maxProperties?: number
  propertyNames?: { maxLength?: number }
}

const findIn = (shape: Shape, path: string): string[] => {
  const { anyOf = [], items, properties = {}, patternProperties } = shape
  if (shape.enum !== undefined || shape.const !== undefined) return []
  const inside = [
    ...anyOf.flatMap((choice) => findIn(choice, path)),
    ...(items ? findIn(items, `${path}[]`) : []),
    ...Object.entries(properties).flatMap(([name, property]) => findIn(property, `${path}.${name}`)),
    ...Object.values(patternProperties ?? {}).flatMap((value) => findIn(value, `${path}{}`)),
  ]
  const isUnbounded =
    (shape.type === 'string' && shape.maxLength === undefined) ||
    (shape.type === 'array' && shape.maxItems === undefined) ||
    // Only maps (`patternProperties`) need a limit. If a schema names the fields of an object, validate.ts refuses more
    // than 1,000 fields, and removes unknown ones.
    (patternProperties !== undefined &&
      (shape.maxProperties === undefined || shape.propertyNames?.maxLength === undefined)) ||
    // An empty schema accepts anything.
    (anyOf.length === 0 && shape.type === undefined)
  return isUnbounded ? [path, ...inside] : inside
}

export const findUnboundedIn = (shape: TSchema): string[] => findIn(shape as Shape, '')

/**
 * Lists the fields of params, queries and bodies that have no maximum length, in the form `METHOD /path part.field`.
 */
export const findUnbounded = (
  routes: readonly Pick<Route, 'method' | 'path' | 'params' | 'query' | 'body'>[],
): string[] =>
  routes.flatMap((route) =>
    (['params', 'query', 'body'] as const).flatMap((part) =>
      route[part] === undefined
        ? []
        : findIn(route[part] as Shape, part).map((field) => `${route.method} ${route.path} ${field}`),
    ),
  )
