// Tests that every list and every map in a request schema has its own size limit. Texts are limited by the maximum sizes of
// path, headers and body.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TSchema } from 'typebox'
import { toolboxEndpoints } from '#src/toolbox/endpoints.ts'
import { startControl } from '#test/control/harness.ts'

type Shape = TSchema &
  Record<'properties' | 'patternProperties', Record<string, TSchema> | undefined> & {
    type?: string
    anyOf?: TSchema[]
    items?: TSchema
    maxItems?: number
    maxProperties?: number
  }

const findUnbounded = (where: string, schema: TSchema | undefined): string[] => {
  if (schema === undefined) return []
  const { type, anyOf = [], items, maxItems, maxProperties, properties = {}, patternProperties } = schema as Shape
  const own = (type === 'array' && !maxItems) || (patternProperties && !maxProperties) ? [where] : []
  const inner = [...Object.entries(properties), ...Object.entries(patternProperties ?? {})]
  return [
    ...own,
    ...anyOf.flatMap((choice) => findUnbounded(where, choice)),
    ...findUnbounded(`${where}[]`, items),
    ...inner.flatMap(([name, property]) => findUnbounded(`${where}.${name}`, property)),
  ]
}

test('every list and map in a request of control or the toolbox has a size limit', async () => {
  await using app = await startControl()
  const rows = [...app.app.routes, ...toolboxEndpoints]
  const unbounded = rows.flatMap(({ method, path, params, query, body }) =>
    Object.entries({ params, query, body }).flatMap(([part, schema]) =>
      findUnbounded(`${method} ${path}: ${part}`, schema as TSchema | undefined),
    ),
  )
  assert.deepEqual(unbounded, [])
})
