// Reads a runner's report about the disk space of its images. Kinds and reasons become labels of metrics. Unknown kinds and
// reasons are ignored, because a runner must not be able to add labels.
import Type, { type TNumber, type TOptional } from 'typebox'
import { givenBackReasons, type ImageStorage, imageKinds } from '#src/wire/image-storage.ts'

const bytes = Type.Number({ minimum: 0, maximum: 2 ** 53 })

const optionalOf = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, Type.Optional(bytes)])) as Record<Name, TOptional<TNumber>>

export const ImageStorageShape = Type.Object({
  bytes: Type.Object(optionalOf(imageKinds)),
  givenBack: Type.Object(
    Object.fromEntries(imageKinds.map((kind) => [kind, Type.Optional(Type.Object(optionalOf(givenBackReasons)))])),
  ),
})

const pick = <Name extends string, Value>(from: Partial<Record<Name, Value>>, names: readonly Name[]) =>
  Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]]))) as Partial<
    Record<Name, Value>
  >

export const knownOf = (said: ImageStorage): ImageStorage => ({
  bytes: pick(said.bytes, imageKinds),
  givenBack: Object.fromEntries(imageKinds.map((kind) => [kind, pick(said.givenBack[kind] ?? {}, givenBackReasons)])),
})
