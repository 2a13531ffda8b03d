// `node killable-builder-program.ts INSTANCE DIRECTORY REGISTRY` fetches or builds an image until the test kills it.
import type { ToBring } from '#src/runner/building/all-images.ts'
import { openBuilding } from './building.ts'

const [instance, directory, registry] = process.argv.slice(2)
if (!instance || !directory || !registry) throw new Error('usage: killable-builder-program INSTANCE DIRECTORY REGISTRY')
const { images } = await openBuilding(instance, directory, registry)

process.on('message', async (assignment: ToBring) => {
  await images.bring(assignment, {
    signal: new AbortController().signal,
    onProgress: ({ step }) => process.send?.(step),
  })
})
