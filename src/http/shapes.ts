// What the schemas of all rooms are made of.
import Type, { type TSchema } from 'typebox'

export const DateTime = Type.String({ format: 'date-time', maxLength: 64 })

/** In characters. The router finds no route for a longer one, so no caller ever hears of this bound. */
export const longestInPath = 1024
/** A value in a path. Any text is good: what was never there is not found, and not a bad request. */
export const PathText = Type.String({ maxLength: longestInPath })

/** Bytes: the largest body that holds a command, code or a text of a file. Its texts cannot be longer. */
export const longestText = 8 * 1024 * 1024
export const LongText = Type.String({ maxLength: longestText })

/** Texts by name. `names` and `values` are the longest of each. */
export const textMap = ({ names, values, most }: { names: number; values: number; most: number }) =>
  Type.Record(Type.String(), Type.String({ maxLength: values }), {
    maxProperties: most,
    propertyNames: { maxLength: names },
  })

export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** Clients in other languages send `null` for what they leave out. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(orNull(schema))
