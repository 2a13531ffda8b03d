// Building blocks for the schemas of all modules.
import Type, { type TSchema } from 'typebox'

export const DateTime = Type.String({ format: 'date-time', maxLength: 64 })

/**
 * Longest value in a path, in characters. The router answers 404 for a longer value, so no caller ever sees this limit.
 */
export const longestInPath = 1024
/** A value in a path. Any text is valid: an unknown id is answered with 404, not with 400. */
export const PathText = Type.String({ maxLength: longestInPath })

/**
 * Largest body, in bytes, that holds a command, code or the text of a file. No single text in the body can be longer.
 */
export const longestText = 8 * 1024 * 1024
export const LongText = Type.String({ maxLength: longestText })

/** A map from names to texts. `names`: longest name. `values`: longest text. `most`: most entries. */
export const textMap = ({ names, values, most }: { names: number; values: number; most: number }) =>
  Type.Record(Type.String(), Type.String({ maxLength: values }), {
    maxProperties: most,
    propertyNames: { maxLength: names },
  })

export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** An optional field that may also be null: clients in other languages send `null` for a field that they leave out. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(orNull(schema))
