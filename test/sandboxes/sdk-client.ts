// Returns a client of the public SDK that calls a test's server.
import { Daytona } from '@daytona/sdk'
import type { Platform } from './harness.ts'

export const connectTo = ({ url, key }: Pick<Platform, 'url' | 'key'>): Daytona =>
  new Daytona({ apiKey: key, apiUrl: `${url}/api` })
