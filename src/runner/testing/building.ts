// For tests: a test host, with images that are built or that come from a registry on loopback.
import { join } from 'node:path'
import { silentLog } from '#src/kit/log.ts'
import { AllImages } from '#src/runner/building/all-images.ts'
import { ImageBuilder } from '#src/runner/building/image-builder.ts'
import { LineCache, type LineLimits } from '#src/runner/building/line-cache.ts'
import { agentAt } from '#src/toolbox/agent/agent.ts'
import { DirectoryStore } from '../archive/directory-store.ts'
import { ContextStore } from '../contexts/store.ts'
import { GivenBack } from '../images/given-back.ts'
import { standardLimits } from '../images/limits.ts'
import { type ImageStore, openImageStore } from '../images/store.ts'
import { type OpenedHost, openTestHostIn } from './test-host.ts'

export const openBuilding = async (
  instance: string,
  directory: string,
  registry: string,
  timeoutMs?: number,
  limits?: LineLimits,
): Promise<OpenedHost & { images: AllImages; lines: LineCache; store: ImageStore; givenBack: GivenBack }> => {
  const givenBack = new GivenBack()
  const store = openImageStore({
    givenBack,
    poolDir: join(directory, 'images'),
    cacheDir: join(directory, 'cache'),
    plainRegistries: [registry],
    publicNetwork: () => Promise.reject(new Error('nothing here is on the Internet')),
    limits: { ...standardLimits, keepFreeBytes: 0 },
    log: silentLog(),
    onProgress: () => {},
  })
  const opened = await openTestHostIn(instance, directory, { brought: store })
  const lines = await LineCache.open({
    host: opened.host,
    bases: store,
    givenBack,
    log: silentLog(),
    ...(limits ? { limits } : {}),
  })
  const builder = new ImageBuilder({
    lines,
    host: opened.host,
    agentAt,
    contexts: new ContextStore(new DirectoryStore(join(directory, 'contexts'))),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  const images = await AllImages.open(store, opened.host, builder, givenBack)
  return { ...opened, lines, store, givenBack, images }
}
