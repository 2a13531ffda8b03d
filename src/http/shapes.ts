// What the schemas of all rooms are made of.
import Type, { type TSchema } from 'typebox'

export const DateTime = Type.String({ format: 'date-time' })

export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** Clients in other languages send `null` for what they leave out. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(orNull(schema))
