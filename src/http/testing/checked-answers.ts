// Checks every answer that a test gets against the schema of its route, with another validator than the server's. The
// reference pages and the generated clients depend on these schemas.
import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { TSchema } from 'typebox'
import type { Route } from '../route.ts'
import { closed } from '../validate.ts'

type Described = Pick<Route, 'method' | 'path' | 'replies'>

const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)

type Validator = ReturnType<typeof ajv.compile>

const validators = new WeakMap<TSchema, Validator>()

/** Compiled validators by the schema's text: each start of control makes new schema objects, and compiling a schema takes 12 ms. */
const validatorsByText = new Map<string, Validator>()

const validatorOf = (schema: TSchema) => {
  const known = validators.get(schema)
  if (known) return known
  const text = JSON.stringify(schema)
  // An answer must not have fields that its schema does not declare, so unknown fields are errors.
  const validator = validatorsByText.get(text) ?? ajv.compile(closed(JSON.parse(text)) as object)
  validatorsByText.set(text, validator)
  validators.set(schema, validator)
  return validator
}

const patterns = new Map<string, RegExp>()

const patternOf = ({ path }: Described): RegExp => {
  const pattern = patterns.get(path) ?? new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`)
  patterns.set(path, pattern)
  return pattern
}
const parametersIn = ({ path }: Described) => path.split(':').length

/** Finds the route that the server's router would choose: fixed parts of a path have priority over parameters. */
const findRoute = (routes: readonly Described[], method: string, path: string): Described | undefined =>
  routes
    .filter((route) => route.method === method && patternOf(route).test(path))
    .sort((one, other) => parametersIn(one) - parametersIn(other))[0]

/** Fails if a route does not declare the status of a successful answer, or if the answer does not match its schema. */
export const checkAnswer = (
  routes: readonly Described[],
  call: { method: string; path: string },
  { status, body, text }: { status: number; body: unknown; text: string },
): void => {
  const route = findRoute(routes, call.method, call.path.split('?')[0]!)
  if (route === undefined || status < 200 || status >= 300) return
  const title = `${route.method} ${route.path}: ${status}`
  assert.ok(status in route.replies, `${title} is not declared`)
  const schema = route.replies[status]
  if (schema === null || schema === undefined) {
    assert.equal(text, '', `${title} has no body`)
    return
  }
  const isValid = validatorOf(schema)
  // If the answer's body is not JSON, check it as a text. Logs are plain text, possibly empty.
  const value = body ?? text
  assert.ok(isValid(value), `${title} is not as its schema says: ${ajv.errorsText(isValid.errors)} in ${text}`)
}
