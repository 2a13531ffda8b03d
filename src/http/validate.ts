// Checks the parts of a request against the schemas of its route. If a part does not match, one sentence says why.
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import Value from 'typebox/value'
import { Problem } from '#src/problems.ts'
import { deepest, mostValues } from './json-text.ts'

type Part = 'params' | 'query' | 'body'

type Check = ReturnType<typeof Compile>
/**
 * `exact` accepts a value only if no field is missing or unknown. Undefined for schemas with defaults: missing fields are then
 * filled in.
 */
type Validator = { check: Check; exact: Check | undefined }

const validators = new WeakMap<TSchema, Validator>()

/**
 * Returns a copy of a JSON schema in which every object with named fields forbids all other fields
 * (`additionalProperties: false`).
 */
export const closed = (schema: unknown): unknown => {
  if (typeof schema !== 'object' || schema === null) return schema
  if (Array.isArray(schema)) return schema.map(closed)
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]))
  return 'properties' in copy && !('additionalProperties' in copy) ? { ...copy, additionalProperties: false } : copy
}

const validatorOf = (schema: TSchema): Validator => {
  const known = validators.get(schema)
  if (known) return known
  const text = JSON.stringify(schema)
  const exact = text.includes('"default"') ? undefined : Compile(closed(JSON.parse(text)) as TSchema)
  const made = { check: Compile(schema), exact }
  validators.set(schema, made)
  return made
}

const countIn = (value: object): number => (Array.isArray(value) ? value.length : Object.keys(value).length)

/**
 * Finds values that no schema may accept. PostgreSQL and paths cannot contain NUL, and UTF-8 cannot contain half a
 * surrogate pair. Later code calls itself for each level of nesting, so the depth has a limit.
 */
const findUnusable = (value: unknown, path: string, depth = 0, seen = { count: 0 }): string | undefined => {
  if (typeof value === 'string') {
    if (value.includes('\0')) return `${path} must not contain a NUL character`
    return value.isWellFormed() ? undefined : `${path} must not contain half of a surrogate pair`
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === deepest) return `${path.split('.')[0]} must not be nested deeper than ${deepest} levels`
  seen.count += countIn(value)
  if (seen.count > mostValues) return `${path.split('.')[0]} must not hold more than ${mostValues} values`
  for (const [key, item] of Object.entries(value)) {
    const complaint = findUnusable(key, path) ?? findUnusable(item, `${path}.${key}`, depth + 1, seen)
    if (complaint !== undefined) return complaint
  }
  return undefined
}

type Bounded = TSchema & {
  anyOf?: Bounded[]
  items?: Bounded
  maxItems?: number
  maxProperties?: number
  properties?: Record<string, Bounded>
}

/**
 * Maximum number of fields in an object whose schema names its fields. Unknown fields count too, because removing each
 * of them takes time.
 */
const mostFields = 1000

/** Checks only how long lists and maps are, so that no time is spent on the values of a list that is too long. */
const findTooLong = (schema: Bounded, value: unknown, path: string): string | undefined => {
  if (typeof value !== 'object' || value === null) return undefined
  const { anyOf = [], items, maxItems = Infinity, maxProperties = mostFields, properties = {} } = schema
  for (const choice of anyOf) {
    const complaint = findTooLong(choice, value, path)
    if (complaint !== undefined) return complaint
  }
  if (Array.isArray(value)) {
    if (value.length > maxItems) return `${path} must not have more than ${maxItems} items`
    for (const [index, item] of items ? value.entries() : []) {
      const complaint = findTooLong(items!, item, `${path}.${index}`)
      if (complaint !== undefined) return complaint
    }
    return undefined
  }
  if (Object.keys(value).length > maxProperties) {
    return `${path} must not have more than ${maxProperties} properties`
  }
  for (const [name, property] of Object.entries(properties)) {
    if (!Object.hasOwn(value, name)) continue
    const complaint = findTooLong(property, (value as Record<string, unknown>)[name], `${path}.${name}`)
    if (complaint !== undefined) return complaint
  }
  return undefined
}

type Properties = Record<string, TSchema & { type?: string; format?: string }>

/** Reads the lists in a query. A list can be a key that is repeated, a text with commas, or a single value. */
const spreadLists = (schema: TSchema, value: Record<string, unknown>) => {
  const properties = (schema as { properties?: Properties }).properties ?? {}
  for (const [name, property] of Object.entries(properties)) {
    const given = value[name]
    if (property.type !== 'array' || given === undefined) continue
    value[name] = (Array.isArray(given) ? given : String(given).split(',')).filter((item) => item !== '')
  }
  return value
}

const numeric = /^-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i

/**
 * An incomplete time that a query may contain: a day, perhaps with a time of day. The offset of the time zone may lack its
 * colon or be absent.
 */
const loose = /^(\d{4}-\d\d-\d\d)(?:[tT ](\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d{4})?)?$/

/** Completes a time to the form of RFC 3339, because clients in some languages leave parts out. Without an offset, it is in UTC. */
const inFull = (text: string): string => {
  const [, day, time = '00:00:00', offset] = loose.exec(text) ?? []
  if (day === undefined) return text
  return `${day}T${time}${offset === undefined ? 'Z' : `${offset.slice(0, 3)}:${offset.slice(3)}`}`
}

/** Converts the texts of a query to the types in the schema: `"5"` becomes 5, and `"true"` becomes true. */
const convertTexts = (schema: TSchema, value: Record<string, unknown>) => {
  const properties = (schema as { properties?: Properties }).properties ?? {}
  for (const [name, property] of Object.entries(properties)) {
    const given = value[name]
    if (typeof given !== 'string') continue
    if ((property.type === 'number' || property.type === 'integer') && numeric.test(given)) value[name] = Number(given)
    if (property.format === 'date-time') value[name] = inFull(given)
    if (property.type === 'boolean' && (given === 'true' || given === 'false')) value[name] = given === 'true'
  }
  return value
}

/**
 * Returns the value without unknown fields, and with defaults filled in. A body that matches exactly is returned at once, because
 * the rest of this function takes milliseconds.
 */
const cleaned = (schema: TSchema, part: Part, given: unknown, exact: Check | undefined): unknown => {
  // If an object has another prototype than `Object.prototype`, it may inherit properties. These properties are not fields of the
  // body, so make a copy without them.
  const isOwn = Object.getPrototypeOf(given) === Object.prototype
  if (part === 'body' && isOwn && exact?.Check(given)) return given
  const copy = structuredClone(given)
  const texts =
    part === 'body' ? copy : convertTexts(schema, spreadLists(schema, { ...(copy as Record<string, unknown>) }))
  if (part !== 'body' && exact?.Check(texts)) return texts
  return Value.Clean(schema, Value.Default(schema, texts))
}

type Complaint = ReturnType<Check['Errors']>[number]

/** Maximum number of allowed values in one error sentence. */
const mostNamed = 30

/**
 * Returns the end of an error sentence: what the schema allows. For a schema with a pattern, the end is the schema's
 * `description`.
 */
const allowedBy = (schema: TSchema, { keyword, params, schemaPath, message }: Complaint): string => {
  const { allowedValues: values, format } = params as { allowedValues?: unknown[]; format?: string }
  if (keyword === 'enum' && values !== undefined) {
    const named = values.filter((value) => value !== '').slice(0, mostNamed)
    return `must be ${values.length > 1 ? 'one of ' : ''}${named.join(', ')}${values.length > mostNamed ? ', …' : ''}`
  }
  if (format === 'date-time') return 'must be a date and time such as 2026-01-31T12:00:00Z'
  if (keyword === 'propertyNames') return 'has a name that is too long'
  if (keyword !== 'pattern') return message
  const steps = schemaPath.split('/').slice(1)
  type Shape = Record<string, unknown> | undefined
  const shape = steps.reduce<Shape>((at, step) => at?.[step] as Shape, schema as Shape)
  return shape?.['description'] === undefined ? message : `must be ${shape['description']}`
}

/**
 * Leaves out errors that do not help the caller. If a key of a map is wrong, only the error of the keyword `propertyNames` stays.
 */
const findTelling = (complaints: readonly Complaint[]): Complaint[] => {
  const isOfName = ({ keyword, schemaPath }: Complaint) =>
    keyword !== 'propertyNames' && /\/propertyNames\b/.test(schemaPath)
  // The error of a union (`anyOf`) is left out, because each branch of the union has its own errors.
  const ofShapes = complaints.filter((each) => each.keyword !== 'anyOf' && !isOfName(each))
  // The error "must be null" is left out if the field, or a field inside it, has another error.
  const isOfNull = ({ params }: Complaint) => 'type' in params && params.type === 'null'
  const others = ofShapes.filter((each) => !isOfNull(each))
  const isAnswered = ({ instancePath }: Complaint) =>
    others.some((other) => `${other.instancePath}/`.startsWith(`${instancePath}/`))
  return ofShapes.filter((each) => !isOfNull(each) || !isAnswered(each))
}

/**
 * Checks one part of a request. Returns the part without unknown fields and with defaults filled in. If the part is wrong, throws
 * `bad_request` with one sentence about several errors, because Daytona's public SDK shows only one text.
 */
export const readPart = (schema: TSchema, part: Part, given: unknown): unknown => {
  const unusable = findTooLong(schema, given, part) ?? findUnusable(given, part)
  if (unusable !== undefined) throw new Problem('bad_request', unusable)
  const { check, exact } = validatorOf(schema)
  const value = cleaned(schema, part, given ?? {}, exact)
  if (check.Check(value)) return value
  const complaints = findTelling(check.Errors(value))
    .slice(0, 5)
    .map((each) => `${[part, ...each.instancePath.split('/').filter(Boolean)].join('.')} ${allowedBy(schema, each)}`)
  throw new Problem('bad_request', complaints.join(', ') || `${part} is not valid`)
}
