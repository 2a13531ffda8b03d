// Turns what came over the wire into the shape a route asks for, or says in one sentence why it is not.
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import Value from 'typebox/value'
import { Problem } from '#src/problems.ts'

type Part = 'params' | 'query' | 'body'

type Validator = { check: ReturnType<typeof Compile>; names: readonly string[] | undefined }

const validators = new WeakMap<TSchema, Validator>()

/** The fields of an object whose shape has no default in it. */
const namesOf = (schema: TSchema): string[] | undefined => {
  const { properties, additionalProperties } = schema as { properties?: object; additionalProperties?: unknown }
  if (properties === undefined || additionalProperties !== undefined) return undefined
  return JSON.stringify(schema).includes('"default"') ? undefined : Object.keys(properties)
}

const validatorOf = (schema: TSchema): Validator => {
  const known = validators.get(schema)
  if (known) return known
  const made = { check: Compile(schema), names: namesOf(schema) }
  validators.set(schema, made)
  return made
}

/** The known fields of an object that holds nothing but plain values; `undefined` for any other. */
const pickPlain = (given: unknown, names: readonly string[]): Record<string, unknown> | undefined => {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return undefined
  const picked: Record<string, unknown> = {}
  for (const name of names) {
    if (!Object.hasOwn(given, name)) continue
    const value = (given as Record<string, unknown>)[name]
    if (typeof value === 'object' && value !== null) return undefined
    picked[name] = value
  }
  return picked
}

/** Far more than any shape of ours has, far less than what exhausts the stack of whoever walks it. */
const deepest = 64

/**
 * What no shape may hold: a NUL, because PostgreSQL's text cannot, nor can a path; half a surrogate pair, because UTF-8
 * cannot; and depth without end, because everything after us walks a value by calling itself.
 */
const findUnusable = (value: unknown, path: string, depth = 0): string | undefined => {
  if (typeof value === 'string') {
    if (value.includes('\0')) return `${path} must not contain a NUL character`
    return value.isWellFormed() ? undefined : `${path} must not contain half of a surrogate pair`
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === deepest) return `${path.split('.')[0]} must not be nested deeper than ${deepest} levels`
  for (const [key, item] of Object.entries(value)) {
    const complaint = findUnusable(key, path) ?? findUnusable(item, `${path}.${key}`, depth + 1)
    if (complaint !== undefined) return complaint
  }
  return undefined
}

type Properties = Record<string, TSchema & { type?: string }>

/** Query arrays come as repeated keys, as one comma list or as a single value (contract/control-plane.md §1). */
const spreadLists = (schema: TSchema, value: Record<string, unknown>) => {
  const properties = (schema as { properties?: Properties }).properties ?? {}
  for (const [name, property] of Object.entries(properties)) {
    const given = value[name]
    if (property.type !== 'array' || given === undefined) continue
    value[name] = (Array.isArray(given) ? given : String(given).split(',')).filter((item) => item !== '')
  }
  return value
}

const numeric = /^-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i

/** Reads `"5"` as 5 and `"true"` as true where the schema wants it, and nothing else. */
const convertTexts = (schema: TSchema, value: Record<string, unknown>) => {
  const properties = (schema as { properties?: Properties }).properties ?? {}
  for (const [name, property] of Object.entries(properties)) {
    const given = value[name]
    if (typeof given !== 'string') continue
    if ((property.type === 'number' || property.type === 'integer') && numeric.test(given)) value[name] = Number(given)
    if (property.type === 'boolean' && (given === 'true' || given === 'false')) value[name] = given === 'true'
  }
  return value
}

/** A copy without unknown fields and with defaults. The walk along the schema is slow, and most calls do not need it. */
const cleaned = (schema: TSchema, part: Part, given: unknown, names: readonly string[] | undefined): unknown => {
  const plain = part === 'body' && names !== undefined ? pickPlain(given, names) : undefined
  if (plain !== undefined) return plain
  const copy = structuredClone(given)
  const texts =
    part === 'body' ? copy : convertTexts(schema, spreadLists(schema, { ...(copy as Record<string, unknown>) }))
  return Value.Clean(schema, Value.Default(schema, texts))
}

/**
 * Checks one part of a request and answers a copy of it without unknown fields and with defaults filled in.
 * Throws `bad_request` whose sentence joins every complaint (the public SDK shows `message` as one string).
 */
export const readPart = (schema: TSchema, part: Part, given: unknown): unknown => {
  const unusable = findUnusable(given, part)
  if (unusable !== undefined) throw new Problem('bad_request', unusable)
  const { check, names } = validatorOf(schema)
  const value = cleaned(schema, part, given ?? {}, names)
  if (check.Check(value)) return value
  const complaints = [...check.Errors(value)]
    .slice(0, 5)
    .map(({ instancePath, message }) => `${[part, ...instancePath.split('/').filter(Boolean)].join('.')} ${message}`)
  throw new Problem('bad_request', complaints.join(', ') || `${part} is not valid`)
}
