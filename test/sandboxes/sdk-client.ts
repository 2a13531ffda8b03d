// The public SDK as a client of a platform.
import { Daytona } from '@daytona/sdk'
import type { Platform } from './harness.ts'

export const connectTo = ({ url, key }: Pick<Platform, 'url' | 'key'>): Daytona =>
  new Daytona({ apiKey: key, apiUrl: `${url}/api` })
