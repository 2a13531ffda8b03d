// Types and limits that the request schemas of several modules use.
import Type, { type TSchema } from 'typebox'

export const DateTime = Type.String({ format: 'date-time', maxLength: 64 })

/**
 * Maximum number of characters of a parameter in a path. For a longer parameter, the router answers 404 before this limit is
 * checked.
 */
export const longestInPath = 1024
/** A parameter in a path. Any text is valid, because an unknown id must be answered with 404 and not with 400. */
export const PathText = Type.String({ maxLength: longestInPath })

/**
 * Maximum size in bytes of a body with a command, with code or with the text of a file. Each text in such a body has this limit
 * too.
 */
export const longestText = 8 * 1024 * 1024
export const LongText = Type.String({ maxLength: longestText })

/** Returns the schema of a map from names to texts. `names` and `values`: maximum lengths. `most`: maximum number of entries. */
export const textMap = ({ names, values, most }: { names: number; values: number; most: number }) =>
  Type.Record(Type.String(), Type.String({ maxLength: values }), {
    maxProperties: most,
    propertyNames: { maxLength: names },
  })

export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** Returns the schema of a field that may be absent or null. Clients in some languages send `null` for fields that are not set. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(orNull(schema))
